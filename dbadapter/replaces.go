package dbadapter

import "slices"

// Replaced is the latest version of a key that one writer made, as far as the
// writer of a record knew when it replaced it.
type Replaced struct {
	Writer WriterID
	Clock  Timestamp
}

// Supersedes reports whether the record's writer knew the version of its key when it
// wrote the record. Then the record names that version or a later one of the same
// writer, or the writer wrote both in one incarnation. Otherwise the two contents were
// written concurrently, and the version's is lost where the record takes its place,
// unless it is kept.
//
// False alarms are possible where more than MaxReplaces writers have written the key,
// or a dated record was in between, which names nothing. A writer that was restored
// from a copy, or restamped, may have made versions out of order. Then a later one does
// not prove that an earlier one was known.
func (r *Record) Supersedes(v Version) bool {
	if v.Writer == r.Version.Writer && v.Incarnation == r.Version.Incarnation {
		return v.Clock < r.Version.Clock
	}
	at, ok := slices.BinarySearchFunc(r.Replaces, v.Writer, compareWriter)
	return ok && r.Replaces[at].Clock >= v.Clock
}

func compareWriter(p Replaced, w WriterID) int {
	switch {
	case p.Writer < w:
		return -1
	case p.Writer > w:
		return 1
	}
	return 0
}

// Replace sets what the record replaces: the version of the record held, and what that one
// replaced; where different nodes hold different ones, of each. It is nil where the key holds
// nothing. The record has its version already. A dated record held is not named, since it has
// no writer. Nor is a version that this writer made in the same incarnation, which Supersedes
// knows without. What is not older than the record itself, which only a restamp replaces, is
// left out. Beyond MaxReplaces the oldest clocks go.
func (r *Record) Replace(held ...*Record) {
	r.Replaces = nil
	if r.Version.Writer == 0 {
		return
	}
	var all []Replaced
	name := func(p Replaced) {
		at, ok := slices.BinarySearchFunc(all, p.Writer, compareWriter)
		if ok {
			all[at].Clock = max(all[at].Clock, p.Clock)
		} else {
			all = slices.Insert(all, at, p)
		}
	}
	for _, h := range held {
		if h == nil {
			continue
		}
		for _, p := range h.Replaces {
			name(p)
		}
		if v := h.Version; v.Writer != 0 && (v.Writer != r.Version.Writer || v.Incarnation != r.Version.Incarnation) {
			name(Replaced{v.Writer, v.Clock})
		}
	}
	all = slices.DeleteFunc(all, func(p Replaced) bool { return p.Clock >= r.Version.Clock })
	for len(all) > MaxReplaces {
		oldest := 0
		for i, p := range all {
			if p.Clock < all[oldest].Clock {
				oldest = i
			}
		}
		all = slices.Delete(all, oldest, oldest+1)
	}
	if len(all) > 0 {
		r.Replaces = all
	}
}
