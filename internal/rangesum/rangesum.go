// Package rangesum keeps the number of records and the sum of their digests for each
// range of the space of indices. So two sides find where they differ without reading
// records.
//
// A Table is brought up to date with each commit at constant cost. Share copies it
// at the cost of 64 pointers: two tables share what neither has changed since, group
// by group.
package rangesum

import "github.com/syncd-io/syncd/dbadapter"

// Table has a sum for each range. The zero value is that of the empty set. It must
// not be copied but by Share. Of two tables that share groups, one may be changed
// while the other is read; Share is a change.
type Table struct {
	// groups that are nil hold no records.
	groups [dbadapter.RangeGroups]*group
	// owned has a bit for each group that no other table shares: it may be changed
	// in place.
	owned uint64
	// total is the sum of all ranges.
	total dbadapter.Sum
}

// group has the sums of neighbouring ranges: 2.5 KiB.
type group [dbadapter.RangesInGroup]dbadapter.Sum

// Share returns a table with the same sums. Whichever of the two changes a group
// afterwards copies that first.
func (t *Table) Share() *Table {
	t.owned = 0
	return &Table{groups: t.groups, total: t.total}
}

// own makes the group of a range the table's own.
func (t *Table) own(r dbadapter.Range) *group {
	at := r / dbadapter.RangesInGroup
	if bit := uint64(1) << at; t.owned&bit == 0 {
		t.owned |= bit
		g := &group{}
		if held := t.groups[at]; held != nil {
			*g = *held
		}
		t.groups[at] = g
	}
	return t.groups[at]
}

// Add adds records under an index.
func (t *Table) Add(i dbadapter.Index, s dbadapter.Sum) {
	r := dbadapter.RangeOf(i)
	g := t.own(r)
	at := r % dbadapter.RangesInGroup
	g[at] = g[at].Add(s)
	t.total = t.total.Add(s)
}

// Sub takes out records under an index.
func (t *Table) Sub(i dbadapter.Index, s dbadapter.Sum) { t.Add(i, dbadapter.Sum{}.Sub(s)) }

// Of is the sum of the ranges [from, to).
func (t *Table) Of(from, to dbadapter.Range) (s dbadapter.Sum) {
	for r := from; r < to; {
		end := min(to, (r/dbadapter.RangesInGroup+1)*dbadapter.RangesInGroup)
		if g := t.groups[r/dbadapter.RangesInGroup]; g != nil {
			for at := r % dbadapter.RangesInGroup; r < end; at, r = at+1, r+1 {
				s = s.Add(g[at])
			}
		}
		r = end
	}
	return s
}

// Total is the sum of all ranges. It is kept, and costs nothing.
func (t *Table) Total() dbadapter.Sum { return t.total }

// Set replaces the sum of a range, and makes the total anew.
func (t *Table) Set(r dbadapter.Range, s dbadapter.Sum) {
	t.own(r)[r%dbadapter.RangesInGroup] = s
	t.total = t.Of(0, dbadapter.Ranges)
}
