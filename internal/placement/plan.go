package placement

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
)

// Next makes the layout of hosts that follows another one, in an epoch; current is nil for the
// first one. It is a function of what it is given, in whatever order the hosts come. So two
// admins' nodes that plan at once make the same layout. anew: each row is made anew. It then
// takes the place also of rows that this node has not heard of, by a statement that is void.
// ErrRule: the rule is not valid. ErrLayout: there is no host, or one is not valid.
func Next(rule *Rule, current *Layout, epoch uint64, anew bool, hosts []roster.ID, ready Ready) (*Layout, error) {
	if err := rule.Validate(); err != nil {
		return nil, err
	}
	if len(hosts) == 0 || len(hosts) > roster.MaxMembers {
		return nil, fmt.Errorf("%w: %d hosts: want 1 to %d", ErrLayout, len(hosts), roster.MaxMembers)
	}
	hosts = slices.Sorted(slices.Values(hosts))
	l := &Layout{basis: basisOf(hosts)}
	for i, id := range hosts {
		if i > 0 && hosts[i-1] == id {
			return nil, fmt.Errorf("%w: host %s is there twice", ErrLayout, id)
		}
		if _, err := id.PublicKey(); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrLayout, err)
		}
	}
	for s := range Shard(rule.Shards) {
		draws := make(map[roster.ID]uint64, len(hosts)) // two hashes each, and many comparisons
		for _, id := range hosts {
			draws[id] = draw(id, s)
		}
		set := slices.SortedFunc(slices.Values(hosts), func(a, b roster.ID) int { return cmp.Or(cmp.Compare(draws[b], draws[a]), cmp.Compare(a, b)) })
		set = set[:min(rule.Replicas, len(set))]
		slices.Sort(set)
		l.rows = append(l.rows, next(s, current, epoch, anew, set, ready))
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
func Plan(rule *Rule, hosts []roster.ID) (*Layout, error) {
	return Next(rule, nil, 1, false, hosts, nil)
}

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

// basisOf hashes the hosts, each with four bytes that are the same for all (docs/protocol/SHARDS.md).
func basisOf(hosts []roster.ID) Basis {
	var b []byte
	for _, id := range slices.Sorted(slices.Values(hosts)) {
		b = append(append(b, id...), 0, 1, 0, 0)
	}
	sum := sha256.Sum256(b)
	return Basis(sum[:len(Basis{})])
}

// draw is the number that a host has for a shard.
func draw(id roster.ID, s Shard) uint64 {
	return xxh3.HashSeed([]byte{byte(s >> 8), byte(s), 0, 0}, xxh3.HashString(string(id)))
}
