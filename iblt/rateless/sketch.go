package rateless

import (
	"fmt"
	"math/bits"
	"slices"
)

// Sketch holds the cells [From, From+Len) of a set's endless sequence. It
// follows each change of the set without allocating, in time that does not
// depend on the set's size. It is not safe for concurrent use.
type Sketch struct {
	words     words
	from      int
	cells     sums
	estimator Estimator // nil in a window
}

// NewSketch returns the first m cells of the empty set, and its estimator. It
// panics unless 0 ≤ m ≤ MaxCells.
func NewSketch(key Key, m int) *Sketch {
	s := NewWindow(key, 0, m)
	s.estimator = make(Estimator, EstimatorSize)
	return s
}

// NewWindow returns the cells [from, to) of the empty set, without an
// estimator. They are a part of the same sequence that NewSketch begins. It
// panics unless 0 ≤ from ≤ to ≤ MaxCells.
func NewWindow(key Key, from, to int) *Sketch {
	if from < 0 || to < from || to > MaxCells {
		panic(fmt.Sprintf("rateless: no cells [%d, %d)", from, to))
	}
	return &Sketch{words: expand(key), from: from, cells: sums{at: make([]sum, to-from)}}
}

// Add adds a pair to the set. A pair whose Checksum is 0 stands for no record
// and changes nothing. Add, Remove and Replace panic on what ErrPair tells of.
func (s *Sketch) Add(p Pair) {
	mustBePair(p)
	s.add(p)
}

// add is Add of what was found to be a pair.
func (s *Sketch) add(p Pair) {
	if p.Checksum != 0 {
		s.apply(p.Index, termOf(p), p.Checksum)
	}
}

// Remove takes a pair out of the set. A pair whose Checksum is 0 stands for no
// record and changes nothing. Cells are sums: removing what was never added
// leaves its negative behind.
func (s *Sketch) Remove(p Pair) {
	mustBePair(p)
	if p.Checksum == 0 {
		return
	}
	s.apply(p.Index, negative(termOf(p)), p.Checksum)
}

// Replace removes old and adds new, which must have the same Index, in one
// mapping. Either may have the Checksum 0.
func (s *Sketch) Replace(old, new Pair) {
	if old.Index != new.Index {
		panic("rateless: Replace of a pair by one of another index")
	}
	mustBePair(old)
	mustBePair(new)
	if old.Checksum == new.Checksum {
		return
	}
	s.apply(new.Index, between(old, new), old.Checksum^new.Checksum)
}

// apply adds a term to the cells of index k, and a checksum to its bit of the
// estimator.
func (s *Sketch) apply(k Index, term sum, v Checksum) {
	s.cells.term()
	t, seed := s.words.tables, s.words.seed(k)
	if s.estimator != nil {
		s.estimator.flip(draw(seed), v)
	}
	cells, from := s.cells.at, uint64(s.from)
	if from >= join {
		if len(cells) > 0 {
			t.blocksFrom(seed, from).addTo(t, cells, from, term)
		}
		return
	}
	for word := t.opening(seed) & (1<<(from+uint64(len(cells))) - 1) >> from; word != 0; word &= word - 1 {
		cells[bits.TrailingZeros64(word)].add(&term)
	}
	if before := join - int(from); len(cells) > before {
		t.blocks(seed).addTo(t, cells[before:], join, term)
	}
}

// From is the position of the first cell.
func (s *Sketch) From() int { return s.from }

// Len is the number of cells.
func (s *Sketch) Len() int { return len(s.cells.at) }

// Prefix returns a copy of the first n cells. It panics if there are fewer.
func (s *Sketch) Prefix(n int) []Cell { return s.cells.values(0, n) }

// Cells returns a copy of the cells at the positions [from, to) of the
// sequence. It fails if the sketch does not hold them all.
func (s *Sketch) Cells(from, to int) ([]Cell, error) {
	if err := s.holds(from, to); err != nil {
		return nil, err
	}
	return s.cells.values(from-s.from, to-s.from), nil
}

// holds is nil if the sketch holds the cells [from, to).
func (s *Sketch) holds(from, to int) error {
	if from < s.from || to < from || to > s.from+s.Len() {
		return fmt.Errorf("read cells [%d, %d): the sketch holds [%d, %d); sketch the missing ones by a scan",
			from, to, s.from, s.from+s.Len())
	}
	return nil
}

// Window returns a copy of the part [from, to) of the sketch, with its estimator
// if from is 0. It panics if the sketch does not hold it.
func (s *Sketch) Window(from, to int) *Sketch {
	if err := s.holds(from, to); err != nil {
		panic("rateless: " + err.Error())
	}
	w := &Sketch{words: s.words, from: from, cells: s.cells}
	w.cells.at = slices.Clone(s.cells.at[from-s.from : to-s.from])
	if from == 0 {
		w.estimator = slices.Clone(s.estimator)
	}
	return w
}

// Clone returns a copy.
func (s *Sketch) Clone() *Sketch { return s.Window(s.from, s.from+s.Len()) }

// Estimator returns a copy of the estimator of the set. A window has no
// estimator.
func (s *Sketch) Estimator() Estimator { return slices.Clone(s.estimator) }

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

// Restore returns the sketch that has these first cells and this estimator, as
// Prefix and Estimator gave them under the same key. It continues a set that was
// sketched before. ErrCell: a cell is not reduced, or the estimator has another
// size.
func Restore(key Key, cells []Cell, e Estimator) (*Sketch, error) {
	if len(e) != EstimatorSize {
		return nil, fmt.Errorf("restore a sketch: its estimator has %d bytes, not %d: %w", len(e), EstimatorSize, ErrCell)
	}
	s := NewWindow(key, 0, len(cells))
	s.estimator = slices.Clone(e)
	for i := range cells {
		if !cells[i].inRange() {
			return nil, fmt.Errorf("restore a sketch: cell %d is out of range: %w", i, ErrCell)
		}
		s.cells.at[i] = sumOf(&cells[i])
	}
	s.cells.terms = 1
	return s, nil
}
