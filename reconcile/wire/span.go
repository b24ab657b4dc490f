package wire

import "github.com/syncd-io/syncd/dbadapter"

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
