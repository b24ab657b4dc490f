package placement

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/internal/roster"
)

// MaxReplicas is how many hosts a shard has at most.
const MaxReplicas = 16

// ErrLayout is returned for bytes that are no layout, and for one that cannot be made.
var ErrLayout = errors.New("no layout")

// Layout says which hosts each shard has. It never changes.
type Layout struct {
	// Epoch counts the layouts of a namespace, from 1.
	Epoch uint64
	// Replicas is how many hosts each shard is to have.
	Replicas int

	hosts []roster.ID // ascending
	table []uint16    // for each shard, the numbers of its hosts, the best first
	each  int         // how many of them a shard has: fewer than Replicas where hosts lack
	value []byte      // as it travels
}

// stored is a layout in CBOR.
type stored struct {
	Epoch    uint64   `cbor:"1,keyasint"`
	Replicas int      `cbor:"2,keyasint"`
	Hosts    [][]byte `cbor:"3,keyasint"`
	// Table has two bytes, big-endian, a place: those of shard 0 first.
	Table []byte `cbor:"4,keyasint"`
}

var encoding, decoding = func() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err) // the options are constants
	}
	dec, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxArrayElements: roster.MaxMembers, MaxMapPairs: 16, MaxNestedLevels: 4,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return enc, dec
}()

// seal computes the bytes of a layout.
func (l *Layout) seal() error {
	s := stored{Epoch: l.Epoch, Replicas: l.Replicas, Table: make([]byte, 0, 2*len(l.table))}
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

// Parse reads a layout of a namespace that has so many shards. There is one form of
// each layout: other bytes are ErrLayout.
func Parse(value []byte, shards int) (*Layout, error) {
	var s stored
	if err := decoding.Unmarshal(value, &s); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrLayout, err)
	}
	switch {
	case s.Epoch == 0:
		return nil, fmt.Errorf("%w: epoch 0", ErrLayout)
	case s.Replicas < 1 || s.Replicas > MaxReplicas:
		return nil, fmt.Errorf("%w: %d replicas", ErrLayout, s.Replicas)
	case len(s.Hosts) == 0 || len(s.Hosts) > roster.MaxMembers:
		return nil, fmt.Errorf("%w: %d hosts", ErrLayout, len(s.Hosts))
	}
	l := &Layout{Epoch: s.Epoch, Replicas: s.Replicas, each: min(s.Replicas, len(s.Hosts)), value: bytes.Clone(value)}
	for i, h := range s.Hosts {
		if i > 0 && bytes.Compare(s.Hosts[i-1], h) >= 0 {
			return nil, fmt.Errorf("%w: the hosts do not ascend", ErrLayout)
		}
		if _, err := roster.ID(h).PublicKey(); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrLayout, err)
		}
		l.hosts = append(l.hosts, roster.ID(h))
	}
	if len(s.Table) != 2*shards*l.each {
		return nil, fmt.Errorf("%w: a table of %d bytes for %d shards of %d hosts", ErrLayout, len(s.Table), shards, l.each)
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

// Beats reports whether the layout counts before another one, which may be nil.
func (l *Layout) Beats(o *Layout) bool {
	if o == nil || l.Epoch != o.Epoch {
		return o == nil || l.Epoch > o.Epoch
	}
	mine, theirs := sha256.Sum256(l.value), sha256.Sum256(o.value)
	return bytes.Compare(mine[:], theirs[:]) > 0
}

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
