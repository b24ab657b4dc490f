package locator

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/seeded"
)

// While one goroutine adds keys and another rebuilds, readers find every key that
// was fed, in its shard.
func TestReadersBesideAWriter(t *testing.T) {
	for name, delta := range deltas {
		t.Run(name, func(t *testing.T) {
			r := seeded.New(t)
			l := newTest(t, Config{Shards: 256, Delta: delta, Seed: r.Uint64()})
			all := twin{}
			var hashes []uint64
			for range 20_000 {
				h := r.Uint64()
				all[h] = Shard(h >> 56)
				hashes = append(hashes, h)
			}
			fed := twin{}
			for _, h := range hashes[:5000] {
				fed[h] = all[h]
			}
			must(t, l.Rebuild(fed.feed))
			ctx, stop := context.WithCancel(context.Background())
			var readers, writer sync.WaitGroup
			for range 2 {
				readers.Go(func() {
					shards, answers := make([]Shard, 100), make([]Answer, 100)
					for ctx.Err() == nil {
						if err := fed.compare(l); err != nil {
							t.Error(err)
							return
						}
						l.LookupBatch(hashes[:100], shards, answers)
						l.Stats()
					}
				})
			}
			writer.Go(func() {
				shards := make([]Shard, 15_000)
				for i := range shards {
					shards[i] = all[hashes[5000+i]]
				}
				if err := l.SetBatch(hashes[5000:], shards); err != nil {
					t.Error(err)
				}
			})
			for range 3 {
				must(t, l.Rebuild(all.feed))
				must(t, l.Repair(all.feed))
				written(t, l)
			}
			writer.Wait()
			stop()
			readers.Wait()
			must(t, all.compare(l))
		})
	}
}

// Strangers are answered at the rate that Stats tells.
func TestFalsePositiveRateOfStrangers(t *testing.T) {
	const n, strangers = 40_000, 400_000
	for name, delta := range deltas {
		t.Run(name, func(t *testing.T) {
			r := seeded.New(t)
			l := newTest(t, Config{Shards: 256, Delta: delta, Seed: r.Uint64(), FalsePositiveBits: 8})
			w := twin{}
			for len(w) < n {
				w[r.Uint64()] = Shard(r.IntN(256))
			}
			must(t, l.Rebuild(w.feed))
			later := leastField - l.Stats().Field
			for range later {
				h, s := r.Uint64(), Shard(r.IntN(256))
				w[h] = s
				must(t, l.Set(h, s))
			}
			written(t, l) // folds the tail
			must(t, l.Repair(w.feed))
			must(t, w.compare(l))
			found := 0
			for range strangers {
				if _, a := l.Lookup(r.Uint64()); a != Nowhere {
					found++
				}
			}
			s := l.Stats()
			rate, σ := float64(found)/strangers, math.Sqrt(s.FalsePositive/strangers)
			// The field has some keys fewer than planned: those that the base answers.
			if low := s.FalsePositive - 6*σ; rate < low && delta == ExactDelta || rate < low*0.95 || rate > s.FalsePositive+6*σ {
				t.Errorf("%d of %d strangers, a rate of %.5f; %.5f is told", found, strangers, rate, s.FalsePositive)
			}
			if want := delta == FieldDelta; s.Repaired != true || s.Field > 0 != want {
				t.Errorf("%+v", s)
			}
		})
	}
}

// No false positive names a shard that there is not.
func TestStrangersAreInNoOtherShard(t *testing.T) {
	for name, delta := range deltas {
		r := seeded.New(t)
		l := newTest(t, Config{Shards: 5, Delta: delta, Seed: r.Uint64(), FalsePositiveBits: 1})
		w := twin{}
		for range 1000 {
			w[r.Uint64()] = Shard(r.IntN(5))
		}
		must(t, l.Rebuild(w.feed))
		hashes := make([]uint64, 1000)
		for i := range hashes {
			hashes[i] = r.Uint64()
		}
		shards, answers := make([]Shard, len(hashes)), make([]Answer, len(hashes))
		l.LookupBatch(hashes, shards, answers)
		likely := 0
		for i, h := range hashes {
			s, a := l.Lookup(h)
			if s > 4 || shards[i] > 4 {
				t.Fatalf("%s: a stranger is in shard %d, in a batch %d, of 5", name, s, shards[i])
			}
			for _, s := range l.Candidates(h) {
				if s > 4 {
					t.Fatalf("%s: a stranger may be in shard %d of 5", name, s)
				}
			}
			if a == Likely {
				likely++
			}
		}
		if likely < 200 { // of 5/16 in the mean
			t.Errorf("%s: %d false positives", name, likely)
		}
	}
}

// A feed that puts keys into several shards leaves these OneOf them, until they
// are set or removed.
func TestSeveralShards(t *testing.T) {
	r := seeded.New(t)
	l := newTest(t, Config{Shards: 100, Seed: r.Uint64()})
	w := twin{}
	for len(w) < 10_000 {
		w[r.Uint64()] = Shard(r.IntN(99))
	}
	twice := map[uint64]bool{}
	must(t, l.Rebuild(func(yield func(uint64, Shard) bool) error {
		for h, s := range w {
			yield(h, s)
			if len(twice) < 500 {
				twice[h] = true
				yield(h, s+1)
			}
		}
		return nil
	}))
	must(t, w.compare(l))
	i := 0
	for h := range twice {
		_, a := l.Lookup(h)
		c := l.Candidates(h)
		slices.Sort(c)
		if a != OneOf || !slices.Equal(c, []Shard{w[h], w[h] + 1}) {
			t.Fatalf("%v, %v; it is in %d and the next one", a, c, w[h])
		}
		switch i++; i % 3 {
		case 0:
			w[h] = 99
			must(t, l.Set(h, 99))
		case 1:
			delete(w, h)
			l.Remove(h)
		}
	}
	again := saved(t, l)
	must(t, w.compare(l))
	must(t, w.compare(again))
	if !slices.Equal(written(t, again), written(t, l)) {
		t.Error("it is saved differently after it was opened")
	}
	for h := range twice {
		if _, ok := w[h]; !ok {
			if s, a := l.Lookup(h); a == OneOf || a == Exact {
				t.Fatalf("%d, %v of a key that was removed", s, a)
			}
		}
	}
	must(t, l.Rebuild(w.feed))
	must(t, w.compare(l))
	if s := l.Stats(); s.Several != 0 || s.Exact != 0 {
		t.Errorf("%+v", s)
	}
}

func TestTooManyContradictions(t *testing.T) {
	l := newTest(t, Config{Shards: 2})
	must(t, l.Set(1, 1))
	err := l.Rebuild(func(yield func(uint64, Shard) bool) error {
		for h := range uint64(MaxSeveral + 1) {
			yield(h, 0)
			yield(h, 1)
		}
		return nil
	})
	if !errors.Is(err, ErrContradiction) {
		t.Fatalf("%v", err)
	}
	if s, a := l.Lookup(1); s != 1 || a != Exact {
		t.Fatalf("%d, %v after a rebuild that failed", s, a)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []Config{
		{},
		{Shards: -1},
		{Shards: MaxShards + 1},
		{Shards: 1, FalsePositiveBits: -1},
		{Shards: 1, FalsePositiveBits: 33},
		{Shards: 1, Delta: 2},
		{Shards: 1, Workers: -1},
		{Shards: 1, Workers: 257},
	} {
		if _, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	l := newTest(t, Config{Shards: 3})
	if err := l.Set(1, 3); !errors.Is(err, ErrShard) {
		t.Errorf("a shard that is not there: %v", err)
	}
	if err := l.SetBatch([]uint64{1}, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("a key without a shard: %v", err)
	}
	if err := l.Rebuild(twin{1: 3}.feed); !errors.Is(err, ErrShard) {
		t.Errorf("a shard that is not there, fed: %v", err)
	}
	if _, a := l.Lookup(1); a != Nowhere {
		t.Errorf("%v after nothing was set", a)
	}
}

// No look-up takes a lock: with all of them held by others, all answers come.
func TestLookupsTakeNoLock(t *testing.T) {
	for name, delta := range deltas {
		t.Run(name, func(t *testing.T) {
			r := seeded.New(t)
			l := newTest(t, Config{Shards: 16, Delta: delta, Seed: r.Uint64()})
			w := twin{}
			for range 3000 {
				h, s := r.Uint64(), Shard(r.IntN(16))
				w[h] = s
				must(t, l.Set(h, s))
			}
			l.maintaining.Lock()
			defer l.maintaining.Unlock()
			l.writing.Lock()
			defer l.writing.Unlock()
			must(t, w.compare(l))
			for h := range w {
				l.LookupBatch([]uint64{h}, make([]Shard, 1), make([]Answer, 1))
				l.Candidates(h)
			}
		})
	}
}

// What is removed while a base is built stays removed, although the feed yielded
// it before; and what is saved meanwhile has all that was said.
func TestRemovedDuringARebuild(t *testing.T) {
	for name, delta := range deltas {
		t.Run(name, func(t *testing.T) {
			r := seeded.New(t)
			l := newTest(t, Config{Shards: 16, Delta: delta, Seed: r.Uint64(), FalsePositiveBits: 32})
			w := twin{}
			var gone []uint64
			for i := range 4 * leastTail {
				h, s := r.Uint64(), Shard(r.IntN(16))
				must(t, l.Set(h, s))
				if w[h] = s; i%2 == 0 {
					gone = append(gone, h) // so many that the tail is folded
				}
			}
			check := func(l *Locator) {
				t.Helper()
				must(t, w.compare(l))
				for _, h := range gone {
					if s, a := l.Lookup(h); a != Nowhere && a != Removed {
						t.Fatalf("removed, and answered %d, %v", s, a)
					}
				}
			}
			must(t, l.Rebuild(func(yield func(uint64, Shard) bool) error {
				must(t, w.feed(yield))
				l.RemoveBatch(gone)
				for _, h := range gone {
					delete(w, h)
				}
				check(l)
				again := saved(t, l)
				check(again)
				return nil
			}))
			check(l)
		})
	}
}
