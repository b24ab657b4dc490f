package wire

import "github.com/syncd-io/syncd/dbadapter"

// The messages of the proof by range: a sync needs them only where the residuals
// differ.

// Hashes are those of what a side holds in parts of the space of indices, but for what
// the difference plan names. The initiator tells those of all groups of ranges. The
// responder answers with those of all ranges in the groups that differ. Groups has a
// bit for each of those.
type Hashes struct {
	Groups uint64
	Hashes []uint64
}

// Listing begins the exact comparison of some ranges. The initiator names the ranges
// that it lists in the Marks that follow, so many in all. It also names those that
// differ and that it leaves for another sync. The responder answers without ranges. Sum
// is what the sender holds outside the ranges left out, now that it has counted anew.
type Listing struct {
	Ranges, Left []dbadapter.Range
	Marks        uint64
	Sum          dbadapter.Sum
}

// Marks are a part of a listing, in ascending order of the index.
type Marks struct{ Marks []Mark }

// Mark stands for the bucket under an index in one sync.
type Mark struct {
	Index dbadapter.Index
	Hash  uint64
}

// Span is the ranges [From, To), a part of all. The zero Span stands for all.
type Span struct{ From, To dbadapter.Range }

// Len is the number of ranges.
func (s Span) Len() int {
	if s == (Span{}) {
		return dbadapter.Ranges
	}
	return int(s.To) - int(s.From)
}

// Holds reports whether an index lies in one of the ranges.
func (s Span) Holds(i dbadapter.Index) bool {
	r := dbadapter.RangeOf(i)
	return s == (Span{}) || s.From <= r && r < s.To
}

// All is the span with its bounds spelt out.
func (s Span) All() (from, to dbadapter.Range) {
	if s == (Span{}) {
		return 0, dbadapter.Ranges
	}
	return s.From, s.To
}

// Indices are the bounds of the span's indices: from ≤ i < to.
func (s Span) Indices() (from, to dbadapter.Index) {
	first, end := s.All()
	from, _ = first.Bounds()
	_, to = (end - 1).Bounds()
	return from, to
}
