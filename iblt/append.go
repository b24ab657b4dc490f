package iblt

import "fmt"

// Append lengthens the sketch by the window that begins where it ends. Both
// must be of the same set and key. It panics if they are not adjacent.
func (s *Sketch) Append(tail *Sketch) {
	if tail.from != s.from+len(s.cells) {
		panic(fmt.Sprintf("iblt: cells from %d appended to cells that end at %d", tail.from, s.from+len(s.cells)))
	}
	s.cells = append(s.cells, tail.cells...)
	if s.far != nil {
		s.far.first = probesBelow(len(s.cells))
	}
}
