package rateless

import (
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// TestSumHasRoom adds the largest cell as often as a sum has room for, and once
// more, and compares each step near the limit with a cell that is reduced at
// once.
func TestSumHasRoom(t *testing.T) {
	biggest := Cell{S1: keyhash.P - 1, S2: keyhash.P - 1, Count: countMask}
	term := sumOf(&biggest)
	s := sums{at: make([]sum, 2)}
	var want Cell
	for i := range 2*maxTerms + 3 {
		s.term()
		s.at[1].add(&term)
		want.add(&biggest)
		if i%maxTerms < 3 || i%maxTerms > maxTerms-3 || i%1000 == 0 {
			if got := s.values(0, 2); got[1] != want || !got[0].IsZero() {
				t.Fatalf("after %d terms: %v, want %v and zero", i+1, got, want)
			}
		}
	}
}

// largest is the pair of the largest numbers.
var largest = sealed(keyhash.P-1, 1<<34-2)

// TestTerms: what an update adds is the difference of two cells.
func TestTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	for range 1000 {
		old := randomPair(r)
		fresh := sealed(old.Index, r.Uint64N(1<<34))
		none := Pair{Index: old.Index}
		for _, c := range [][2]Pair{{old, fresh}, {old, none}, {none, fresh}, {largest, Pair{Index: largest.Index}}} {
			var want Cell
			for i, q := range []Pair{c[1], c[0]} {
				if cell := cellOf(q); q.Checksum != 0 && i == 0 {
					want.add(&cell)
				} else if q.Checksum != 0 {
					want.sub(&cell)
				}
			}
			if got := between(c[0], c[1]); got != sumOf(&want) {
				t.Fatalf("from %v to %v: %x, want %x", c[0], c[1], got, sumOf(&want))
			}
		}
		plus := cellOf(old)
		minus := times(plus, p-1)
		minus.Count = countMask
		if termOf(old) != sumOf(&plus) || negative(termOf(old)) != sumOf(&minus) {
			t.Fatalf("%v: %x and %x", old, termOf(old), negative(termOf(old)))
		}
	}
}

// TestAppendOfFullSums appends a window whose sums are nearly full to a sketch
// whose sums are not.
func TestAppendOfFullSums(t *testing.T) {
	p := largest
	head, tail, want := NewSketch(Key{}, 8), NewWindow(Key{}, 8, 600), NewSketch(Key{}, 600)
	cells := cellsOf(&head.words, p.Index, 600)
	if cells[len(cells)-1] < 8 {
		t.Fatal("the pair has no cell in the window")
	}
	for range maxTerms {
		tail.Add(p)
		want.Add(p)
		head.Add(p)
	}
	head.cells.terms = 1
	for i := range head.cells.at {
		c := head.cells.at[i].cell()
		head.cells.at[i] = sumOf(&c)
	}
	head.Append(tail)
	for range 5 {
		head.Add(p)
		want.Add(p)
		got, want := head.Prefix(600), want.Prefix(600)
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("cell %d is %v, want %v", i, got[i], want[i])
			}
		}
	}
}

// TestCopiesOfFullSums adds on to copies of sketches whose sums are full.
func TestCopiesOfFullSums(t *testing.T) {
	p := largest
	full, want := NewSketch(Key{}, 8), Cell{}
	term := cellOf(p)
	for range maxTerms {
		full.Add(p)
		want.add(&term)
	}
	clone, window := full.Clone(), full.Window(0, 4)
	for i := range 5 {
		clone.Add(p)
		window.Add(p)
		want.add(&term)
		for name, s := range map[string]*Sketch{"clone": clone, "window": window} {
			if got := s.Prefix(1)[0]; got != want {
				t.Fatalf("the %s after %d more: cell 0 is %v, want %v", name, i+1, got, want)
			}
		}
	}
}
