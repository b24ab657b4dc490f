package placement

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
)

// MaxHosts bounds the members that a layout names. They are as many as a namespace has,
// and as many that were removed and stay old hosts until the moves from them end.
const MaxHosts = 2 * roster.MaxMembers

// MaxTable is the longest layout in bytes: MaxHosts of 42 bytes, 4,096 rows of two sets of 16
// hosts, and some.
const MaxTable = 448 << 10

// ErrLayout is returned for bytes that are no layout, and for one that cannot be made.
var ErrLayout = errors.New("no layout")

// Layout says which hosts each shard has: it has a row for each. It never changes.
type Layout struct {
	hosts []roster.ID // ascending: the members that the rows name
	rows  []*quorum.Row
	basis Basis
	value []byte // as it travels
}

// Basis stands for what a layout was made of: the hosts. A layout suits the hosts while its basis is theirs, whatever its table says: two programs
// that draw differently would otherwise state layouts in turns.
type Basis [8]byte

// storedLayout is a layout in CBOR.
type storedLayout struct {
	Hosts [][]byte `cbor:"1,keyasint"`
	Basis []byte   `cbor:"2,keyasint"`
	// Rows has the row of each shard, that of shard 0 first: see appendRow.
	Rows []byte `cbor:"3,keyasint"`
}

// seal computes the bytes of a layout.
func (l *Layout) seal() error {
	s := storedLayout{Basis: l.basis[:]}
	for _, h := range l.hosts {
		s.Hosts = append(s.Hosts, []byte(h))
	}
	for _, r := range l.rows {
		s.Rows = l.appendRow(s.Rows, r)
	}
	var err error
	l.value, err = encoding.Marshal(s)
	if err == nil && len(l.value) > MaxTable {
		err = fmt.Errorf("%w: %d bytes: at most %d", ErrLayout, len(l.value), MaxTable)
	}
	return err
}

// appendRow appends a row: its new hosts, its old hosts, its epoch in 8 bytes and the name of
// the row before in 16. There are no old hosts where they are the new ones. A set is a byte
// that counts it, and for each host its number in the list of hosts, in 2 bytes. Numbers are
// big-endian. The count of the old hosts of a row that was forced has its highest bit set.
func (l *Layout) appendRow(b []byte, r *quorum.Row) []byte {
	set := func(ids []roster.ID) {
		b = append(b, byte(len(ids)))
		for _, id := range ids {
			n, _ := slices.BinarySearch(l.hosts, id)
			b = binary.BigEndian.AppendUint16(b, uint16(n))
		}
	}
	set(r.New)
	at := len(b)
	if r.AtRest() {
		set(nil)
	} else {
		set(r.Old)
	}
	if r.Forced {
		b[at] |= forced
	}
	return append(binary.BigEndian.AppendUint64(b, r.Epoch), r.Parent[:]...)
}

// forced marks the count of the old hosts of a row that was forced.
const forced = 0x80

// takeRow reads what appendRow has appended.
func (l *Layout) takeRow(b []byte, shard Shard) (*quorum.Row, []byte, error) {
	malformed := fmt.Errorf("%w: the row of shard %d is malformed", ErrLayout, shard)
	set := func() (ids []roster.ID, ok bool) {
		if len(b) == 0 || int(b[0]) > MaxReplicas || len(b) < 1+2*int(b[0]) {
			return nil, false
		}
		n := int(b[0])
		for i := range n {
			at := int(binary.BigEndian.Uint16(b[1+2*i:]))
			if at >= len(l.hosts) || i > 0 && l.hosts[at] <= ids[i-1] {
				return nil, false
			}
			ids = append(ids, l.hosts[at])
		}
		b = b[1+2*n:]
		return ids, true
	}
	row := &quorum.Row{Shard: uint16(shard)}
	var sound [2]bool
	row.New, sound[0] = set()
	if sound[0] && len(b) > 0 {
		if row.Forced = b[0]&forced != 0; row.Forced {
			b = append([]byte{b[0] &^ forced}, b[1:]...)
		}
		row.Old, sound[1] = set()
	}
	if !sound[1] || len(row.New) == 0 || slices.Equal(row.Old, row.New) || len(b) < 8+len(row.Parent) {
		return nil, nil, malformed
	}
	if len(row.Old) == 0 {
		row.Old = row.New
	}
	row.Epoch, row.Parent = binary.BigEndian.Uint64(b), quorum.Name(b[8:8+len(row.Parent)])
	if row.Epoch == 0 {
		return nil, nil, malformed
	}
	return row.Seal(), b[8+len(row.Parent):], nil
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
	l := &Layout{value: bytes.Clone(value)}
	if len(s.Hosts) == 0 || len(s.Hosts) > MaxHosts || len(s.Basis) != len(l.basis) {
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
	rest := s.Rows
	for shard := range Shard(rule.Shards) {
		var row *quorum.Row
		var err error
		if row, rest, err = l.takeRow(rest, shard); err != nil {
			return nil, err
		}
		l.rows = append(l.rows, row)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the rows of %d shards", ErrLayout, len(rest), rule.Shards)
	}
	if again, err := encoding.Marshal(s); err != nil || !bytes.Equal(again, value) {
		return nil, fmt.Errorf("%w: it has another form than that of its content", ErrLayout)
	}
	return l, nil
}

// Suits reports whether the layout was made for these hosts. Where it was not, an admin's
// node states another one.
func (l *Layout) Suits(hosts []roster.ID) bool { return l.basis == basisOf(hosts) }

// Ready reports whether a member has signed that it is ready for the row of a shard.
type Ready func(shard Shard, row quorum.Name, id roster.ID) bool

// of is ready for one row.
func (ready Ready) of(r *quorum.Row) func(roster.ID) bool {
	return func(id roster.ID) bool { return ready(Shard(r.Shard), r.Name(), id) }
}

// Moves counts the shards that move: those of which each new host is ready, so that the next
// layout ends the move, and the others.
func (l *Layout) Moves(ready Ready) (ended, under int) {
	for _, r := range l.rows {
		switch {
		case r.AtRest():
		case r.Ready(ready.of(r)):
			ended++
		default:
			under++
		}
	}
	return ended, under
}

// Epoch is the greatest of a row.
func (l *Layout) Epoch() (epoch uint64) {
	for _, r := range l.rows {
		epoch = max(epoch, r.Epoch)
	}
	return epoch
}

// Shards is how many there are.
func (l *Layout) Shards() int { return len(l.rows) }

// Row is the row of a shard. It must not be changed.
func (l *Layout) Row(s Shard) *quorum.Row { return l.rows[s] }

// Hosts are those of both sets of a shard's row, in ascending order.
func (l *Layout) Hosts(s Shard) []roster.ID { return l.rows[s].Hosts() }

// Has reports whether a node is a host of a shard, of either set.
func (l *Layout) Has(s Shard, id roster.ID) bool { return l.rows[s].IsHost(id) }
