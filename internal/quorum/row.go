// Package quorum has the rules by which the hosts of a shard answer as one: which answers
// are enough, when a host has all that was acknowledged, and how the hosts change. It has no
// clock, no store and no network.
package quorum

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/syncd-io/syncd/internal/roster"
)

// ID names a member.
type ID = roster.ID

// Name stands for a row: two members go by the same row if its name is the same.
type Name [16]byte

// Row says who the hosts of a shard are. While the shard moves, the old hosts and the new
// ones are two sets, of which each needs a majority; at rest they are the same.
type Row struct {
	Shard  uint16
	Epoch  uint64 // counts the rows of the shard, from 1
	Parent Name   // of the row before; zero for the first
	// Old and New are sets: each ascends, and is not empty.
	Old, New []ID
}

// Name is the row's name: a hash of shard, epoch, sets and parent.
func (r *Row) Name() (name Name) {
	b := binary.BigEndian.AppendUint16(nil, r.Shard)
	b = binary.BigEndian.AppendUint64(b, r.Epoch)
	b = append(b, r.Parent[:]...)
	for _, set := range [2][]ID{r.Old, r.New} {
		b = binary.BigEndian.AppendUint16(b, uint16(len(set)))
		for _, id := range set {
			b = binary.BigEndian.AppendUint16(b, uint16(len(id)))
			b = append(b, id...)
		}
	}
	sum := sha256.Sum256(b)
	return Name(sum[:])
}

// AtRest reports whether no move is under way.
func (r *Row) AtRest() bool { return slices.Equal(r.Old, r.New) }

// IsOld and IsNew report whether a member is an old host, and a new one.
func (r *Row) IsOld(id ID) bool { return slices.Contains(r.Old, id) }

// IsNew is described at IsOld.
func (r *Row) IsNew(id ID) bool { return slices.Contains(r.New, id) }

// IsHost reports whether a member is a host of either set.
func (r *Row) IsHost(id ID) bool { return r.IsOld(id) || r.IsNew(id) }

// Hosts are the members of both sets, in ascending order.
func (r *Row) Hosts() []ID {
	all := slices.Concat(r.Old, r.New)
	slices.Sort(all)
	return slices.Compact(all)
}

// Later reports whether a row takes the place of another one where two members meet: of two
// rows the one with the greater epoch, and of one epoch that with the greater name. (3)
func (r *Row) Later(other *Row) bool {
	a, b := r.Name(), other.Name()
	return r.Epoch > other.Epoch || r.Epoch == other.Epoch && bytes.Compare(a[:], b[:]) > 0
}

// Majority is how many of n hosts are a majority; the others may fail. (1)
func Majority(n int) int { return n/2 + 1 }

// most reports whether a majority of a set is among those that is reports.
func most(set []ID, is func(ID) bool) bool {
	n := 0
	for _, id := range set {
		if is(id) {
			n++
		}
	}
	return n >= Majority(len(set))
}

// Enough reports whether answers are enough: those of a majority of the old hosts, whole
// ones, and of a majority of the new hosts, whole or not. (5, 7)
func (r *Row) Enough(have, whole func(ID) bool) bool {
	return most(r.Old, func(id ID) bool { return have(id) && whole(id) }) && most(r.New, have)
}
