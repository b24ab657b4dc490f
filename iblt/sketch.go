package iblt

import (
	"fmt"
	"slices"
)

// Sketch holds the cells [From, From+Len) of a set's endless sequence, and
// follows each change of the set in time that does not depend on its size. It
// is not safe for concurrent use.
type Sketch struct {
	words words
	from  int
	cells []Cell
}

// NewSketch returns the first m cells of the empty set.
func NewSketch(key Key, m int) *Sketch { return NewWindow(key, 0, m) }

// NewWindow returns the cells [from, to) of the empty set: a part of the same
// sequence that NewSketch begins. It panics unless 0 ≤ from ≤ to ≤ MaxCells.
func NewWindow(key Key, from, to int) *Sketch {
	if from < 0 || to < from || to > MaxCells {
		panic(fmt.Sprintf("iblt: no cells [%d, %d)", from, to))
	}
	return &Sketch{words: expand(key), from: from, cells: make([]Cell, to-from)}
}

// Add adds a pair to the set. A pair whose Checksum is 0 stands for no record
// and changes nothing.
func (s *Sketch) Add(p Pair) {
	if p.Checksum == 0 {
		return
	}
	c := s.words.cellOf(p)
	s.apply(p.Index, &c)
}

// Remove takes a pair out of the set. A pair whose Checksum is 0 stands for no
// record and changes nothing. Cells are sums: removing what was never added
// leaves its negative behind.
func (s *Sketch) Remove(p Pair) {
	if p.Checksum == 0 {
		return
	}
	var c Cell
	d := s.words.cellOf(p)
	c.sub(&d)
	s.apply(p.Index, &c)
}

// Replace removes old and adds new, which must have the same Index, in one
// walk. Either may have the Checksum 0.
func (s *Sketch) Replace(old, new Pair) {
	if old.Index != new.Index {
		panic("iblt: Replace of a pair by one of another index")
	}
	if old.Checksum == new.Checksum {
		return
	}
	var c Cell
	if new.Checksum != 0 {
		c = s.words.cellOf(new)
	}
	if old.Checksum != 0 {
		d := s.words.cellOf(old)
		c.sub(&d)
	}
	s.apply(new.Index, &c)
}

// apply adds c to the cells of index k.
func (s *Sketch) apply(k Index, c *Cell) {
	from, to := uint64(s.from), uint64(s.from+len(s.cells))
	var at [batch]uint32
	walk := s.words.startAt(k, from)
	for walk.at < to {
		for _, i := range at[:walk.fill(s.words.laws, at[:], to)] {
			s.cells[uint64(i)-from].add(c)
		}
	}
}

// From is the position of the first cell.
func (s *Sketch) From() int { return s.from }

// Len is the number of cells.
func (s *Sketch) Len() int { return len(s.cells) }

// Prefix returns a copy of the first n cells. It panics if there are fewer.
func (s *Sketch) Prefix(n int) []Cell { return slices.Clone(s.cells[:n:n]) }

// Cells returns a copy of the cells at the positions [from, to) of the
// sequence, and an error if the sketch does not hold them all.
func (s *Sketch) Cells(from, to int) ([]Cell, error) {
	if from < s.from || to < from || to > s.from+len(s.cells) {
		return nil, fmt.Errorf("read cells [%d, %d): the sketch holds [%d, %d); sketch the missing ones by a scan",
			from, to, s.from, s.from+len(s.cells))
	}
	return slices.Clone(s.cells[from-s.from : to-s.from]), nil
}

// Window returns a copy of the part [from, to) of the sketch. It panics if the
// sketch does not hold it.
func (s *Sketch) Window(from, to int) *Sketch {
	cells, err := s.Cells(from, to)
	if err != nil {
		panic("iblt: " + err.Error())
	}
	return &Sketch{words: s.words, from: from, cells: cells}
}

// Clone returns a copy.
func (s *Sketch) Clone() *Sketch { return s.Window(s.from, s.from+len(s.cells)) }
