package placement

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/internal/roster"
)

// MaxTable is the longest layout in bytes: 1,000 hosts of 40 bytes, 4,096 shards of 16
// hosts of 2 bytes, and some.
const MaxTable = 172 << 10

// ErrLayout is returned for bytes that are no layout, and for one that cannot be made.
var ErrLayout = errors.New("no layout")

// Layout says which hosts each shard has. It never changes.
type Layout struct {
	hosts []roster.ID // ascending
	table []uint16    // for each shard, the numbers of its hosts, the best first
	each  int         // how many of them a shard has: fewer than the rule's replicas where hosts lack
	basis Basis
	value []byte // as it travels
}

// Basis stands for what a layout was made of: the hosts with their weights and zones. A
// layout suits the hosts while its basis is theirs, whatever its table says: two programs
// that draw differently would otherwise state layouts in turns.
type Basis [8]byte

// storedLayout is a layout in CBOR.
type storedLayout struct {
	Hosts [][]byte `cbor:"1,keyasint"`
	Basis []byte   `cbor:"2,keyasint"`
	// Table has two bytes, big-endian, a place: those of shard 0 first.
	Table []byte `cbor:"3,keyasint"`
}

// seal computes the bytes of a layout.
func (l *Layout) seal() error {
	s := storedLayout{Basis: l.basis[:], Table: make([]byte, 0, 2*len(l.table))}
	for _, h := range l.hosts {
		s.Hosts = append(s.Hosts, []byte(h))
	}
	for _, n := range l.table {
		s.Table = append(s.Table, byte(n>>8), byte(n))
	}
	var err error
	l.value, err = encoding.Marshal(s)
	return err
}

// Value is the layout as it travels. It must not be changed.
func (l *Layout) Value() []byte { return l.value }

// Table is the name by which a statement states the layout.
func (l *Layout) Table() roster.Table { return roster.TableOf(l.value) }

// Parse reads a layout of a namespace that is cut by a rule, which is valid. There is one
// form of each layout: other bytes are ErrLayout.
func Parse(value []byte, rule *Rule) (*Layout, error) {
	if len(value) > MaxTable {
		return nil, fmt.Errorf("%w: %d bytes: at most %d", ErrLayout, len(value), MaxTable)
	}
	var s storedLayout
	if err := decoding.Unmarshal(value, &s); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrLayout, err)
	}
	l := &Layout{each: min(rule.Replicas, len(s.Hosts)), value: bytes.Clone(value)}
	if len(s.Hosts) == 0 || len(s.Hosts) > roster.MaxMembers || len(s.Basis) != len(l.basis) {
		return nil, fmt.Errorf("%w: %d hosts, and a basis of %d bytes", ErrLayout, len(s.Hosts), len(s.Basis))
	}
	l.basis = Basis(s.Basis)
	for i, h := range s.Hosts {
		if i > 0 && bytes.Compare(s.Hosts[i-1], h) >= 0 {
			return nil, fmt.Errorf("%w: the hosts do not ascend", ErrLayout)
		}
		if _, err := roster.ID(h).PublicKey(); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrLayout, err)
		}
		l.hosts = append(l.hosts, roster.ID(h))
	}
	if len(s.Table) != 2*rule.Shards*l.each {
		return nil, fmt.Errorf("%w: a table of %d bytes for %d shards of %d hosts", ErrLayout, len(s.Table), rule.Shards, l.each)
	}
	for i := 0; i < len(s.Table); i += 2 {
		n := uint16(s.Table[i])<<8 | uint16(s.Table[i+1])
		begun := len(l.table) - len(l.table)%l.each // of this shard
		if int(n) >= len(l.hosts) || slices.Contains(l.table[begun:], n) {
			return nil, fmt.Errorf("%w: shard %d has no host %d, or has it twice", ErrLayout, len(l.table)/l.each, n)
		}
		l.table = append(l.table, n)
	}
	if again, err := encoding.Marshal(s); err != nil || !bytes.Equal(again, value) {
		return nil, fmt.Errorf("%w: it has another form than that of its content", ErrLayout)
	}
	return l, nil
}

// Suits reports whether the layout was made for these hosts. Where it was not, an admin's
// node states another one.
func (l *Layout) Suits(hosts []Host) bool { return l.basis == basisOf(hosts) }

// Shards is how many there are.
func (l *Layout) Shards() int { return len(l.table) / l.each }

// All are the hosts that the layout knows, in ascending order; one of little weight may
// have no shard.
func (l *Layout) All() []roster.ID { return slices.Clone(l.hosts) }

// Hosts are those of a shard, the one with the greatest number first.
func (l *Layout) Hosts(s Shard) []roster.ID {
	out := make([]roster.ID, l.each)
	for i, n := range l.places(s) {
		out[i] = l.hosts[n]
	}
	return out
}

// Has reports whether a node is a host of a shard.
func (l *Layout) Has(s Shard, id roster.ID) bool {
	n, known := slices.BinarySearch(l.hosts, id)
	return known && slices.Contains(l.places(s), uint16(n))
}

func (l *Layout) places(s Shard) []uint16 { return l.table[int(s)*l.each : (int(s)+1)*l.each] }

// Moves counts the places of shards that are another host's under the next layout: what
// has to travel.
func (l *Layout) Moves(next *Layout) int {
	moves := 0
	for s := range l.Shards() {
		for _, id := range next.Hosts(Shard(s)) {
			if !l.Has(Shard(s), id) {
				moves++
			}
		}
	}
	return moves
}
