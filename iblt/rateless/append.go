package rateless

import "fmt"

// Append lengthens the sketch by the window that begins where it ends. Both
// must be of the same set. It panics if they are not adjacent, or were made with
// different keys.
func (s *Sketch) Append(tail *Sketch) {
	if tail.words != s.words {
		panic("rateless: Append of cells that were made with another key")
	}
	if tail.from != s.from+s.Len() {
		panic(fmt.Sprintf("rateless: cells from %d appended to cells that end at %d", tail.from, s.from+s.Len()))
	}
	s.cells.at = append(s.cells.at, tail.cells.at...)
	s.cells.terms = max(s.cells.terms, tail.cells.terms)
}
