// Package quorum has the rules by which the hosts of a shard answer as one. They say which
// answers are enough, when a host has all that was acknowledged, and how the hosts change.
// It has no clock, no store and no network.
package quorum

import (
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
// ones are two sets, of which each needs a majority. At rest they are the same.
type Row struct {
	Shard  uint16
	Epoch  uint64 // that of the layout that made the row: it grows, by 1 or more, from 1
	Parent Name   // of the row before; zero for the first
	// Old and New are sets: each ascends, and is not empty.
	Old, New []ID
	// Forced: an admin has named those that are left as the old hosts, since a majority of the old
	// hosts was gone for good. By this row they are whole, whatever they lost. (17)
	Forced bool

	name Name // zero: not sealed
}

// Seal computes the row's name for all who ask for it: the row must not be changed any more.
func (r *Row) Seal() *Row {
	r.name = r.hash()
	return r
}

// Name is the row's name: a hash of shard, epoch, sets and parent.
func (r *Row) Name() Name {
	if r.name != (Name{}) {
		return r.name
	}
	return r.hash()
}

func (r *Row) hash() Name {
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
	if r.Forced {
		b = append(b, 1)
	}
	sum := sha256.Sum256(b)
	return Name(sum[:])
}

// Founds reports whether a member is whole by the row. It is as an old host of the first row,
// which has no parent, or of one that was forced. (4, 17)
func (r *Row) Founds(id ID) bool { return r.IsOld(id) && (r.Forced || r.Parent == Name{}) }

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

// Next is the row that follows, in the layout of an epoch. The hosts are to be a set that
// ascends and is not empty. ready reports whether a new host has signed that it is ready for
// this row. While the sets stay as they are, the row itself does.
//
//   - Once each new host has signed, the new hosts are the old ones. (12)
//   - Until then only the new hosts change. (13)
//   - Who was removed or has lapsed stays an old host. To leave it out at once would make a
//     smaller majority, which can miss what was acknowledged. (14)
func (r *Row) Next(epoch uint64, hosts []ID, ready func(ID) bool) *Row {
	old := r.Old
	if r.Ready(ready) {
		old = r.New
	}
	if slices.Equal(old, r.Old) && slices.Equal(hosts, r.New) {
		return r
	}
	return (&Row{Shard: r.Shard, Epoch: epoch, Parent: r.Name(), Old: old, New: hosts}).Seal()
}

// Force is the row that follows, in the layout of an epoch, where those that are left are named by
// hand as the old hosts. What only others held is lost. (17)
func (r *Row) Force(epoch uint64, left []ID) *Row {
	return (&Row{Shard: r.Shard, Epoch: epoch, Parent: r.Name(), Old: left, New: r.New, Forced: true}).Seal()
}

// Ready reports whether each new host has signed that it is ready for the row. (12)
func (r *Row) Ready(ready func(ID) bool) bool {
	return !slices.ContainsFunc(r.New, func(id ID) bool { return !ready(id) })
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

// Enough reports whether answers are enough. They are those of a majority of the old
// hosts, whole ones, and of a majority of the new hosts, whole or not. (5, 7)
func (r *Row) Enough(have, whole func(ID) bool) bool {
	return most(r.Old, func(id ID) bool { return have(id) && whole(id) }) && most(r.New, have)
}
