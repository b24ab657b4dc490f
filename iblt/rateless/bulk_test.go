package rateless

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// sequence yields pairs, then the error if there is one.
func sequence(pairs []Pair, err error) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		for _, p := range pairs {
			if !yield(p, nil) {
				return
			}
		}
		if err != nil {
			yield(Pair{}, err)
		}
	}
}

// processors sets GOMAXPROCS until the function that it returns is called.
func processors(n int) (restore func()) {
	before := runtime.GOMAXPROCS(n)
	return func() { runtime.GOMAXPROCS(before) }
}

// equal tells whether two sketches have the same cells and estimator.
func equal(a, b *Sketch) error {
	got, want := a.Prefix(a.Len()), b.Prefix(b.Len())
	if a.From() != b.From() || len(got) != len(want) {
		return fmt.Errorf("%d cells from %d, want %d from %d", len(got), a.From(), len(want), b.From())
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("cell %d is %v, want %v", a.From()+i, got[i], want[i])
		}
	}
	if !reflect.DeepEqual(a.Estimator(), b.Estimator()) {
		return fmt.Errorf("another estimator")
	}
	return nil
}

// AddAll gives what Add gives, whatever the number of processors, in sketches
// and windows that hold something before and go on changing after.
func TestAddAllIsAddOfEach(t *testing.T) {
	defer goleak.VerifyNone(t)
	rapid.Check(t, func(t *rapid.T) {
		defer processors(rapid.IntRange(1, 5).Draw(t, "processors"))()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		to := rapid.SampledFrom([]int{0, 1, 40, 63, 64, 65, 200, 3000}).Draw(t, "to")
		empty := NewSketch(Key{1}, to)
		if rapid.Bool().Draw(t, "window") {
			empty = NewWindow(Key{1}, rapid.IntRange(0, to).Draw(t, "from"), to)
		}
		n := rapid.SampledFrom([]int{0, 1, blockPairs - 1, blockPairs, blockPairs + 1, 3 * blockPairs, 7*blockPairs + 5}).Draw(t, "pairs")
		before, pairs := randomPairs(r, 20), randomPairs(r, n)
		if n > 0 {
			pairs[r.IntN(n)].Checksum = 0
		}
		got, want := empty.Clone(), empty.Clone()
		for _, s := range []*Sketch{got, want} {
			for _, p := range before[:10] {
				s.Add(p)
			}
			for _, p := range before[5:] {
				s.Remove(p)
			}
		}
		if err := got.AddAll(sequence(pairs, nil)); err != nil {
			t.Fatal(err)
		}
		for _, p := range pairs {
			want.Add(p)
		}
		if err := equal(got, want); err != nil {
			t.Fatal(err)
		}
		for _, p := range pairs[:n/2] {
			got.Remove(p)
			want.Remove(p)
		}
		if err := equal(got, want); err != nil {
			t.Fatalf("after removals: %v", err)
		}
	})
}

// The parts of several goroutines add up, whichever of them gets how much.
func TestAddAllParts(t *testing.T) {
	defer goleak.VerifyNone(t)
	defer processors(3)()
	r := rand.New(rand.NewPCG(1, 0))
	pairs := randomPairs(r, 3*blockPairs+40*blockPairs+7)
	got, want := NewSketch(Key{}, 1<<10), NewSketch(Key{}, 1<<10)
	b := newBulk(got)
	for i := range 3 { // as if each came before the last was added
		b.start(slices.Clone(pairs[i*blockPairs : (i+1)*blockPairs]))
	}
	if err := b.read(sequence(pairs[3*blockPairs:], nil)); err != nil {
		t.Fatal(err)
	}
	b.merge()
	for _, p := range pairs {
		want.Add(p)
	}
	if err := equal(got, want); err != nil {
		t.Error(err)
	}
	if len(b.parts) != 3 {
		t.Errorf("%d parts, of at most 3", len(b.parts))
	}
	if huge := newBulk(NewWindow(Key{}, 0, bulkCells+1)); huge.limit != 1 {
		t.Errorf("%d sketches of %d cells", huge.limit, bulkCells+1)
	}
	few := newBulk(got)
	if err := few.read(sequence(pairs[:blockPairs], nil)); err != nil || len(few.parts) != 0 {
		t.Errorf("%d goroutines for one block (%v)", len(few.parts), err)
	}
}

// An error ends AddAll, and so does a panic of the sequence; neither leaves a
// goroutine behind.
func TestAddAllEndsEarly(t *testing.T) {
	defer goleak.VerifyNone(t)
	defer processors(4)()
	r := rand.New(rand.NewPCG(1, 0))
	pairs := randomPairs(r, 20*blockPairs)
	bad := errors.New("bad")
	for _, n := range []int{0, 1, blockPairs, blockPairs + 1, len(pairs)} {
		if err := NewSketch(Key{}, 100).AddAll(sequence(pairs[:n], bad)); !errors.Is(err, bad) {
			t.Errorf("an error after %d pairs: %v", n, err)
		}
	}
	defer func() {
		if recover() != "broken" {
			t.Error("the panic got lost")
		}
	}()
	_ = NewSketch(Key{}, 100).AddAll(func(yield func(Pair, error) bool) {
		for _, p := range pairs {
			yield(p, nil)
		}
		panic("broken")
	})
}
