package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
)

// MaxZone is the longest name of a zone in bytes.
const MaxZone = 64

// MaxWeight is the greatest weight of a host: how many times the share of one of
// weight 1 it takes.
const MaxWeight = 64

// Host is a node that is willing to hold shards.
type Host struct {
	ID     roster.ID
	Weight int // 1 to MaxWeight
	// Zone names what fails at once with the host: a machine, a rack, a site. Hosts
	// without a zone are in one each.
	Zone string
}

// Next makes the layout of hosts that follows another one, in an epoch; current is nil for the
// first one. It is a function of what it is given, in whatever order the hosts come. So two
// admins' nodes that plan at once make the same layout. anew: each row is made anew. It then
// takes the place also of rows that this node has not heard of, by a statement that is void.
// ErrRule: the rule is not valid. ErrLayout: there is no host, or one is not valid.
func Next(rule *Rule, current *Layout, epoch uint64, anew bool, hosts []Host, ready Ready) (*Layout, error) {
	if err := rule.Validate(); err != nil {
		return nil, err
	}
	if len(hosts) == 0 || len(hosts) > roster.MaxMembers {
		return nil, fmt.Errorf("%w: %d hosts: want 1 to %d", ErrLayout, len(hosts), roster.MaxMembers)
	}
	hosts = byID(hosts)
	l := &Layout{basis: basisOf(hosts)}
	for i, h := range hosts {
		if h.Weight < 1 || h.Weight > MaxWeight {
			return nil, fmt.Errorf("%w: host %s has weight %d: want 1 to %d", ErrLayout, h.ID, h.Weight, MaxWeight)
		}
		if len(h.Zone) > MaxZone {
			return nil, fmt.Errorf("%w: host %s has a zone of %d bytes: at most %d", ErrLayout, h.ID, len(h.Zone), MaxZone)
		}
		if i > 0 && hosts[i-1].ID == h.ID {
			return nil, fmt.Errorf("%w: host %s is there twice", ErrLayout, h.ID)
		}
		if _, err := h.ID.PublicKey(); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrLayout, err)
		}
	}
	draws := make([]draw, len(hosts))
	for s := range rule.Shards {
		for i := range hosts {
			draws[i] = draw{hosts[i].draw(Shard(s)), uint16(i)}
		}
		slices.SortFunc(draws, func(a, b draw) int { return cmp.Or(cmp.Compare(b.number, a.number), cmp.Compare(a.host, b.host)) })
		var set []roster.ID
		for _, n := range choose(draws, hosts, min(rule.Replicas, len(hosts))) {
			set = append(set, hosts[n].ID)
		}
		slices.Sort(set)
		l.rows = append(l.rows, next(Shard(s), current, epoch, anew, set, ready))
	}
	return l, l.list()
}

// list computes the members that the rows name, and the bytes of the layout.
func (l *Layout) list() error {
	l.hosts = nil
	for _, r := range l.rows {
		l.hosts = append(l.hosts, r.New...)
		l.hosts = append(l.hosts, r.Old...)
	}
	slices.Sort(l.hosts)
	if l.hosts = slices.Compact(l.hosts); len(l.hosts) > MaxHosts {
		return fmt.Errorf("%w: %d members are hosts or old hosts: at most %d; the next layout is due when moves have ended", ErrLayout, len(l.hosts), MaxHosts)
	}
	return l.seal()
}

// Force makes the layout that follows another one, in an epoch, where the old hosts of some shards
// are named by hand. The hosts that the layout was made for stay as they are.
func Force(current *Layout, epoch uint64, left map[Shard][]roster.ID) (*Layout, error) {
	l := &Layout{basis: current.basis, rows: slices.Clone(current.rows)}
	for s, ids := range left {
		ids = slices.Compact(slices.Sorted(slices.Values(ids)))
		if int(s) >= len(l.rows) || len(ids) == 0 || len(ids) > MaxReplicas {
			return nil, fmt.Errorf("%w: shard %d with %d hosts that are left", ErrLayout, s, len(ids))
		}
		l.rows[s] = l.rows[s].Force(epoch, ids)
	}
	return l, l.list()
}

// Plan makes the first layout of hosts.
func Plan(rule *Rule, hosts []Host) (*Layout, error) { return Next(rule, nil, 1, false, hosts, nil) }

// next is the row that follows the current one of a shard. In the first row the hosts are old
// and new.
func next(s Shard, current *Layout, epoch uint64, anew bool, hosts []roster.ID, ready Ready) *quorum.Row {
	if current == nil {
		return (&quorum.Row{Shard: uint16(s), Epoch: epoch, Old: hosts, New: hosts}).Seal()
	}
	before := current.Row(s)
	row := before.Next(epoch, hosts, ready.of(before))
	if row == before && anew {
		row = (&quorum.Row{Shard: uint16(s), Epoch: epoch, Parent: before.Name(), Old: before.Old, New: before.New}).Seal()
	}
	return row
}

func byID(hosts []Host) []Host {
	return slices.SortedFunc(slices.Values(hosts), func(a, b Host) int { return cmp.Compare(a.ID, b.ID) })
}

func basisOf(hosts []Host) Basis {
	var b []byte
	for _, h := range byID(hosts) {
		b = append(b, h.ID...)
		b = binary.BigEndian.AppendUint16(b, uint16(h.Weight))
		b = binary.BigEndian.AppendUint16(b, uint16(len(h.Zone)))
		b = append(b, h.Zone...)
	}
	sum := sha256.Sum256(b)
	return Basis(sum[:len(Basis{})])
}

// draw is the number that a host has for a shard.
type draw struct {
	number uint64
	host   uint16
}

// draw is the greatest of as many numbers as the host has weight.
func (h *Host) draw(s Shard) (greatest uint64) {
	seed := xxh3.HashString(string(h.ID))
	for i := range h.Weight {
		var b [4]byte
		binary.BigEndian.PutUint16(b[:], uint16(s))
		binary.BigEndian.PutUint16(b[2:], uint16(i))
		greatest = max(greatest, xxh3.HashSeed(b[:], seed))
	}
	return greatest
}

// choose takes hosts in the order of their draws: one of each zone, then a second one of
// each, and so on.
func choose(draws []draw, hosts []Host, want int) []uint16 {
	taken := make([]uint16, 0, want)
	perZone := map[string]int{}
	for round := 0; len(taken) < want; round++ {
		for _, d := range draws {
			zone := hosts[d.host].Zone
			if len(taken) == want || slices.Contains(taken, d.host) || zone != "" && perZone[zone] > round {
				continue
			}
			taken = append(taken, d.host)
			perZone[zone]++
		}
	}
	return taken
}
