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
	largest := Cell{S1: keyhash.P - 1, S2: keyhash.P - 1, Check: checkMask, Count: countMask}
	term := sumOf(&largest)
	s := sums{at: make([]sum, 2)}
	var want Cell
	for i := range 2*maxTerms + 3 {
		s.term()
		s.at[1].add(&term)
		want.add(&largest)
		if i%maxTerms < 3 || i%maxTerms > maxTerms-3 || i%1000 == 0 {
			if got := s.values(0, 2); got[1] != want || !got[0].IsZero() {
				t.Fatalf("after %d terms: %v, want %v and zero", i+1, got, want)
			}
		}
	}
}

func TestReduce(t *testing.T) {
	const seed = 2
	r := rand.New(rand.NewPCG(seed, 0))
	check := func(x uint64) {
		if got := reduce(x); got != x%keyhash.P {
			t.Fatalf("reduce(%d) = %d, want %d (seed %d)", x, got, x%keyhash.P, seed)
		}
	}
	for _, x := range []uint64{0, 1, keyhash.P - 1, keyhash.P, keyhash.P + 1, 2*keyhash.P - 1, 2 * keyhash.P, 1<<48 - 1, 1 << 48, 1<<64 - 1, (1<<64 - 1) / keyhash.P * keyhash.P} {
		check(x)
		check(x - 1)
	}
	for range 100_000 {
		check(r.Uint64() >> r.IntN(64))
	}
}

// TestAppendOfFullSums appends a window whose sums are nearly full to a sketch
// whose sums are not.
func TestAppendOfFullSums(t *testing.T) {
	p := Pair{Index: keyhash.P - 1, Checksum: keyhash.P - 1}
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
	p := Pair{Index: keyhash.P - 1, Checksum: keyhash.P - 1}
	full, want := NewSketch(Key{}, 8), Cell{}
	term := full.words.cellOf(p)
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
