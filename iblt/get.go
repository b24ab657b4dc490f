package iblt

import "fmt"

// Answer is what a table knows of a key.
type Answer uint8

// The three answers of GET (paper, section 2.3).
const (
	Unknown Answer = iota // "not found": the key may be in the table or not
	Absent                // null: the key is not in the table
	Found                 // the key is in the table, with the value beside
)

func (a Answer) String() string {
	switch a {
	case Unknown:
		return "unknown"
	case Absent:
		return "absent"
	case Found:
		return "found"
	}
	return fmt.Sprintf("Answer(%d)", uint8(a))
}

// Get looks key x up, in O(k) time. With n keys in m cells, it finds a key that
// is there with a chance of 1 − (1 − e^(−kn/m))^k. It learns that one is absent
// with the same chance; otherwise the answer is Unknown. NoChecks tells absence
// with the higher chance 1 − (1 − e^(−kn/m)·(1 + kn/m))^k (sections 2.3 and 3).
//
// A key that was deleted without having been inserted is Found as well, as in
// the paper's Figure 3. One with several values is Unknown.
func (t *Table) Get(x uint64) (y uint64, answer Answer) {
	l := t.layout
	want := l.hash(x, 0)
	var room places
	for _, p := range t.places(&want, &room) {
		c := &t.cells[p.cell]
		// Unlike the paper, the value's sums have to be zero too. Otherwise a key
		// that was inserted and deleted with different values would be absent.
		if l.empty(c) {
			return 0, Absent
		}
		if !l.maybe(c, p.code) {
			if l.config.Checks == NoChecks && c.Count == 1 {
				return 0, Absent // the cell holds one key, another one
			}
			continue
		}
		if e, ok := l.only(c, p.cell); ok && e.x == x {
			return e.y, Found
		}
	}
	return 0, Unknown
}

// maybe reports whether the key's sum is what copies of the key alone add up
// to. The test spares most cells the hashing.
func (l *Layout) maybe(c *TableCell, code uint64) bool {
	if l.config.Sums == Wrapping {
		code *= uint64(c.Count)
	}
	return (c.KeySum^code)&l.keyMask == 0
}
