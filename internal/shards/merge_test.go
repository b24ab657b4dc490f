package shards

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
)

// Sequences are merged by key: all of each, up to an error or to where the loop ends; and
// those that were begun are ended.
func TestByKey(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var want []string
		var all []iter.Seq2[string, error]
		running, broken := 0, errors.New("broken")
		fails := rng.IntN(3) == 0
		for s := range rng.IntN(6) {
			var keys []string
			for range rng.IntN(8) {
				keys = append(keys, fmt.Sprintf("%02d/%d", rng.IntN(40), s))
			}
			slices.Sort(keys)
			want = append(want, keys...)
			all = append(all, func(yield func(string, error) bool) {
				running++
				defer func() { running-- }()
				for _, key := range keys {
					if !yield(key, nil) {
						return
					}
				}
				if fails {
					yield("", broken)
				}
			})
		}
		slices.Sort(want)
		var got []string
		var failed error
		most := rng.IntN(40)
		for key, err := range ByKey(func(s *string) []byte { return []byte(*s) }, all) {
			if err != nil {
				failed = err
				break
			}
			if got = append(got, key); len(got) > most {
				break
			}
		}
		switch whole := len(got) == len(want); {
		case running != 0:
			t.Fatalf("seed %d: %d sequences go on", seed, running)
		case !slices.Equal(got, want[:len(got)]):
			t.Fatalf("seed %d: %q of %q", seed, got, want)
		case fails && len(all) > 0 && failed == nil && len(got) <= most, !fails && (failed != nil || !whole && len(got) <= most):
			t.Fatalf("seed %d: %d of %d elements, and %v", seed, len(got), len(want), failed)
		}
	}
}
