package dbadapter

import "github.com/syncd-io/syncd/internal/keyhash"

// The space of indices is cut into Ranges parts of 2^30 indices, the first and
// the last a few short. Indices are hashes, so that ranges are equally full.
const (
	// Ranges is the number of ranges: of 10^7 records one holds 2,400, which can
	// be listed in some 30 KiB.
	Ranges = 1 << 12
	// RangesInGroup is how many neighbouring ranges make a group. There are as many
	// groups: what differs is found in two steps of at most 64 hashes each.
	RangesInGroup = 64
	// RangeGroups is the number of groups.
	RangeGroups = Ranges / RangesInGroup

	rangeShift = 30
	indexEnd   = keyhash.P // indices are less
)

// Range is a part of the space of indices, from 0 to Ranges − 1.
type Range uint16

// RangeOf is the range that an index lies in.
func RangeOf(i Index) Range { return Range(i >> rangeShift) }

// Bounds are those of the range's indices: from ≤ i < to.
func (r Range) Bounds() (from, to Index) {
	return max(Index(r)<<rangeShift, 1), min((Index(r)+1)<<rangeShift, indexEnd)
}

// Sum is the number of records in a set, or in a part of it, and the sum of their
// digests. The zero value is that of the empty set.
type Sum struct {
	Records uint64
	Digest  Digest
}

// Add returns the sum of two disjoint sets.
func (s Sum) Add(t Sum) Sum { return Sum{s.Records + t.Records, s.Digest.Add(t.Digest)} }

// Sub returns the sum of a set without a part of it.
func (s Sum) Sub(t Sum) Sum { return Sum{s.Records - t.Records, s.Digest.Sub(t.Digest)} }
