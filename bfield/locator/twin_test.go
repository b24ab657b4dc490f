package locator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/seeded"
)

var deltas = map[string]Delta{"exact": ExactDelta, "field": FieldDelta}

// Whatever is done, in whatever order: a key that is in a shard is never answered
// with another one, nor with Nowhere.
func TestLocatorTwin(t *testing.T) {
	for name, delta := range deltas {
		for _, shards := range []int{1, 3, 256, MaxShards} {
			t.Run(fmt.Sprintf("%s/%d", name, shards), func(t *testing.T) {
				r := seeded.New(t)
				play(t, r, newTest(t, Config{Shards: shards, Delta: delta, Seed: r.Uint64(), FalsePositiveBits: 4}))
			})
		}
	}
}

// play does random things to a Locator and to its twin. False positives are
// frequent at 2^-4, and keys that an operation hits are often old ones.
func play(t *testing.T, r *rand.Rand, l *Locator) {
	w := twin{}
	var keys []uint64 // ever used
	hash := func() uint64 {
		if len(keys) > 0 && r.IntN(3) > 0 {
			return keys[r.IntN(len(keys))]
		}
		keys = append(keys, r.Uint64())
		if len(keys) == 1 {
			keys[0] = l.hash(0) // the tail keeps it apart
		}
		return keys[len(keys)-1]
	}
	// change does n random changes.
	change := func(n int) {
		hashes, shards := make([]uint64, n), make([]Shard, n)
		for i := range hashes {
			hashes[i], shards[i] = hash(), Shard(r.IntN(l.config.Shards))
		}
		switch r.IntN(4) {
		case 0:
			l.RemoveBatch(hashes)
			for _, h := range hashes {
				delete(w, h)
			}
		default:
			must(t, l.SetBatch(hashes, shards))
			for i, h := range hashes {
				w[h] = shards[i]
			}
		}
	}
	failed := errors.New("the feed failed")
	for step := range 60 {
		switch r.IntN(12) {
		case 0, 1: // changes while a base is built, before and after they could be fed
			broken := r.IntN(3) == 0
			before := twin{}
			for h, s := range w {
				before[h] = s
			}
			err := l.Rebuild(func(yield func(uint64, Shard) bool) error {
				n := 0
				for h, s := range before {
					if n++; n%50 == 0 {
						change(1 + r.IntN(40))
						must(t, w.compare(l))
					}
					if !yield(h, s) {
						return nil
					}
				}
				change(1 + r.IntN(1000))
				if broken {
					return failed
				}
				return nil
			})
			if broken != errors.Is(err, failed) || !broken && err != nil {
				t.Fatal(err)
			}
		case 2:
			if l.config.Delta == ExactDelta {
				continue
			}
			must(t, l.Repair(func(yield func(uint64, Shard) bool) error {
				before := twin{}
				for h, s := range w {
					before[h] = s
				}
				n := 0
				for h, s := range before {
					if n++; n%100 == 0 {
						change(1 + r.IntN(40))
					}
					yield(h, s)
				}
				return nil
			}))
		case 3:
			l = saved(t, l)
		case 4: // a feed that is fed again changes nothing
			exact := l.Stats().Exact
			for h, s := range w {
				if _, a := l.Lookup(h); a != OneOf {
					must(t, l.Set(h, s))
				}
			}
			if again := l.Stats().Exact; again != exact {
				t.Fatalf("%d entries became %d when all was fed again", exact, again)
			}
		default:
			change(1 + r.IntN(300))
		}
		if err := w.compare(l); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	compareBatch(t, l, keys)
	must(t, l.Rebuild(w.feed))
	must(t, w.compare(l))
	if s := l.Stats(); s.Exact != 0 || s.Field != 0 || s.Base != len(w) {
		t.Fatalf("after a last rebuild of %d keys: %+v", len(w), s)
	}
}

// A batch answers as single look-ups do.
func compareBatch(t *testing.T, l *Locator, hashes []uint64) {
	t.Helper()
	shards, answers := make([]Shard, len(hashes)), make([]Answer, len(hashes))
	l.LookupBatch(hashes, shards, answers)
	for i, h := range hashes {
		if s, a := l.Lookup(h); s != shards[i] || a != answers[i] {
			t.Fatalf("key %x: %d, %v in a batch, %d, %v alone", h, shards[i], answers[i], s, a)
		}
	}
}

// What was removed is Removed or Nowhere, and what moved is Exact, until the next
// rebuild: with fingerprints of 32 bits nothing is a false positive.
func TestCertainty(t *testing.T) {
	for name, delta := range deltas {
		t.Run(name, func(t *testing.T) {
			r := seeded.New(t)
			l := newTest(t, Config{Shards: 256, Delta: delta, Seed: r.Uint64(), FalsePositiveBits: 32})
			w, later := twin{}, twin{}
			for range 20_000 {
				w[r.Uint64()] = Shard(r.IntN(256))
				later[r.Uint64()] = Shard(r.IntN(256))
			}
			must(t, l.Rebuild(w.feed))
			for h, s := range w {
				if got, a := l.Lookup(h); a != Likely || got != s {
					t.Fatalf("a key of the base: %v", a)
				}
			}
			for h, s := range later {
				must(t, l.Set(h, s))
			}
			i, counts := 0, map[Answer]int{}
			for h, s := range later {
				_, a := l.Lookup(h)
				counts[a]++
				switch i++; i % 3 {
				case 0:
					l.Remove(h)
					if _, a := l.Lookup(h); a != Removed && a != Nowhere {
						t.Fatalf("just removed: %v", a)
					}
				case 1:
					must(t, l.Set(h, s^1))
					if got, a := l.Lookup(h); a != Exact || got != s^1 {
						t.Fatalf("just moved: %v", a)
					}
				}
			}
			if delta == ExactDelta && counts[Exact] != len(later) {
				t.Errorf("new keys: %v", counts)
			}
			if delta == FieldDelta && (counts[Likely] < leastField/2 || counts[Likely]+counts[OneOf]+counts[Exact] != len(later)) {
				t.Errorf("new keys: %v", counts)
			}
			for h := range w {
				l.Remove(h)
				if _, a := l.Lookup(h); a != Removed {
					t.Fatalf("a key of the base just removed: %v", a)
				}
			}
		})
	}
}
