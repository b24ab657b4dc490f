package bfield

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

func sourceOf(entries []entry) source {
	return source{len(entries), func(chunk []entry, from int) { copy(chunk, entries[from:]) }}
}

// TestSorted fills arrays of several stripes in order and sorted, by one worker and by
// some: each bit is the same, and so is what is indeterminate.
func TestSorted(t *testing.T) {
	const seed = 15
	r := rand.New(rand.NewPCG(seed, 0))
	for name, c := range shapes {
		for _, n := range []int{1, 300, leastBlock + 1, 3*leastBlock - 1} {
			c.Keys = uint64(n)
			plan, err := NewPlan(c)
			if err != nil {
				t.Fatal(err)
			}
			entries := make([]entry, n)
			for i := range entries {
				entries[i] = entry{key{r.Uint64(), r.Uint64()}, r.Uint64N(c.Values)}
			}
			entries[n-1] = entries[0]
			s := sourceOf(entries)
			for _, level := range []int{0, 2} {
				plain := newField(plan, seed, 1)
				plain.fill(&plain.levels[0], level, s)
				for _, workers := range []int{1, 2, 7} {
					f := newField(plan, seed, workers)
					f.fillSorted(&f.levels[0], level, s, workers)
					if !bytes.Equal(f.levels[0].bytes, plain.levels[0].bytes) {
						t.Fatalf("%s, %d keys, level %d: %d workers fill another array (seed %d)", name, n, level, workers, seed)
					}
					if level > 0 {
						continue
					}
					want := plain.undecided(nil, entries)
					if got := f.indeterminateSorted(s, 0, n); !slices.Equal(got, want) {
						t.Fatalf("%s, %d keys: %d are indeterminate, %d in order (seed %d)", name, n, len(got), len(want), seed)
					}
					if half := f.indeterminateSorted(s, n/2, n); !slices.Equal(half, plain.undecided(nil, entries[n/2:])) {
						t.Fatalf("%s: of the second half of %d keys others are indeterminate (seed %d)", name, n, seed)
					}
				}
			}
		}
	}
}

// TestStripesOfTheirOwn: what a worker sets lies in its stripes, and what reaches beyond is
// handed back: so no two workers write to one byte.
func TestStripesOfTheirOwn(t *testing.T) {
	const seed, n, workers = 5, 2 * leastBlock, 3
	r := rand.New(rand.NewPCG(seed, 0))
	plan, err := NewPlan(Config{Keys: n, Values: 1000, FalsePositive: 1.0 / 1024})
	if err != nil {
		t.Fatal(err)
	}
	entries := make([]entry, n)
	for i := range entries {
		entries[i] = entry{key{r.Uint64(), r.Uint64()}, r.Uint64N(1000)}
	}
	f := newField(plan, seed, workers)
	a := &f.levels[0]
	part := f.newSorted(a, n, workers)
	part.sort(f, a, 0, sourceOf(entries), 0, n)
	stripes, handed := len(part.lists), 0
	for w := range workers {
		first, end := stripes*w/workers, stripes*(w+1)/workers
		clear(a.bytes)
		handed += len(part.set(a, first, end, nil))
		from, to := uint64(first)<<part.shift/8, min(uint64(end)<<part.shift/8, uint64(len(a.bytes)))
		if end == stripes {
			to = uint64(len(a.bytes))
		}
		if !zeros(a.bytes[:from]) || !zeros(a.bytes[to:]) || zeros(a.bytes[from:to]) {
			t.Errorf("worker %d sets bits outside of its stripes %d to %d", w, first, end-1)
		}
	}
	if handed == 0 {
		t.Error("no window reaches beyond")
	}
}
