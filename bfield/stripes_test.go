package bfield

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

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
