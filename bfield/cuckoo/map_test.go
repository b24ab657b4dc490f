package cuckoo

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/internal/seeded"
)

// A Map does what a Go map does: sets, changes, deletions, keys at the ends of
// the range, with and without a plan, through growth and saving.
func TestMapEqualsTwin(t *testing.T) {
	for _, c := range []struct {
		name  string
		plan  int
		steps int
		keys  uint64
	}{
		{"grows", 0, 120_000, 1 << 47},
		{"planned", 60_000, 120_000, 1 << 47},
		{"overflows its plan", 30_000, 100_000, 1 << 47},
		{"churns", 0, 100_000, 30_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := seeded.New(t)
			m := newMap(t, MapConfig{Keys: c.plan, Seed: r.Uint64()})
			twin := map[uint64]uint64{}
			var recent [64]uint64
			for i := range c.steps {
				k := key(r, c.keys)
				if r.IntN(4) == 0 {
					k = recent[r.IntN(len(recent))]
				}
				recent[r.IntN(len(recent))] = k
				before := m.Stats().Work.Searched
				if _, had := twin[k]; r.IntN(4) == 0 {
					if m.Delete(k) != had {
						t.Fatalf("step %d: Delete(%#x) = %v", i, k, !had)
					}
					delete(twin, k)
				} else {
					v := key(r, 1<<47)
					if err := m.Set(k, v); err != nil {
						t.Fatalf("step %d: %v", i, err)
					}
					twin[k] = v
				}
				if v, ok := m.Get(k); ok != mapHas(twin, k) || v != twin[k] {
					t.Fatalf("step %d: Get(%#x) = %#x, %v, want %#x", i, k, v, ok, twin[k])
				}
				if n := m.Stats().Work.Searched - before; n > 2*mapNodes {
					t.Fatalf("step %d: %d buckets were searched", i, n)
				}
				if i == c.steps/2 {
					m = savedMap(t, m)
				}
			}
			if err := compare(m, twin); err != nil {
				t.Fatal(err)
			}
			if most := m.Stats().Work.MostMoved; most > MaxMoves || most == 0 {
				t.Errorf("a call moved %d entries; the bound is %d", most, MaxMoves)
			}
			for range 20_000 {
				k := key(r, 1<<47)
				if _, ok := m.Get(k); ok != mapHas(twin, k) {
					t.Fatalf("Get(%#x) = %v", k, ok)
				}
			}
			for k := range maps.Clone(twin) {
				if !m.Delete(k) || m.Delete(k) {
					t.Fatalf("Delete(%#x) is not true once", k)
				}
			}
			if err := compare(m, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// key is below n, or one of the ends of the range.
func key(r *rand.Rand, n uint64) uint64 {
	switch r.IntN(1000) {
	case 0:
		return 0
	case 1:
		return keyMask
	}
	return r.Uint64N(n)
}

func mapHas(m map[uint64]uint64, k uint64) bool { _, ok := m[k]; return ok }

func savedMap(t testing.TB, m *Map[uint64, uint64]) *Map[uint64, uint64] {
	t.Helper()
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	got := new(Map[uint64, uint64])
	if err := got.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestGetBatchEqualsGet(t *testing.T) {
	r := seeded.New(t)
	m := newMap(t, MapConfig{})
	var keys []uint64
	for range 40_000 {
		k := key(r, 1<<48)
		keys = append(keys, k, k^1, k|1<<48, r.Uint64())
		if err := m.Set(k, key(r, 1<<48)); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range crowd(t, &m.exact, 2*mapSlots+5) { // some go to the stash
		keys = append(keys, x)
		if err := m.Set(x, x^5); err != nil {
			t.Fatal(err)
		}
	}
	if m.Stats().Stash == 0 {
		t.Fatal("the stash is empty")
	}
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, n := range []int{0, 1, batch - 1, batch, batch + 1, 1000, len(keys)} {
		values, found := make([]uint64, n+1), make([]bool, n+1)
		for i := range values {
			values[i], found[i] = 99, true // of an earlier use
		}
		hits, want := m.GetBatch(keys[:n], values, found), 0
		for i, k := range keys[:n] {
			v, ok := m.Get(k)
			if v != values[i] || ok != found[i] {
				t.Fatalf("key %#x: %#x, %v in a batch, %#x, %v alone", k, values[i], found[i], v, ok)
			}
			if ok {
				want++
			}
		}
		if hits != want || m.GetBatch(keys[:n], values, nil) != want {
			t.Errorf("%d hits of %d keys, want %d", hits, n, want)
		}
		if values[n] != 99 || !found[n] {
			t.Error("it wrote beyond the keys")
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic at too few values")
		}
	}()
	m.GetBatch(keys[:3], make([]uint64, 2), nil)
}

func TestMapSize(t *testing.T) {
	r := seeded.New(t)
	const keys = 300_000
	for _, plan := range []int{0, 100_000, keys} {
		m := newMap(t, MapConfig{Keys: plan, Seed: r.Uint64()})
		worst := 0.0
		for n := 1; n <= keys; n++ {
			if err := m.Set(r.Uint64()&keyMask, 0); err != nil {
				t.Fatal(err)
			}
			if n >= max(plan, 60_000) && n%1024 == 0 || n == plan {
				worst = max(worst, float64(m.Stats().Bytes)/float64(m.Len()))
			}
		}
		limit := 14.5
		if plan == keys {
			limit = 12.2
		}
		if worst > limit {
			t.Errorf("planned %d: up to %.2f bytes an entry, want at most %v", plan, worst, limit)
		}
		t.Logf("planned %d: up to %.2f bytes an entry", plan, worst)
	}
}

func TestRangeOfMap(t *testing.T) {
	m := newMap(t, MapConfig{})
	for _, e := range []entry{{1 << 48, 0}, {0, 1 << 48}, {math.MaxUint64, 0}, {0, math.MaxUint64}} {
		if err := m.Set(e.key, e.value); !errors.Is(err, ErrRange) {
			t.Errorf("Set(%#x, %#x): error %v", e.key, e.value, err)
		}
	}
	if _, ok := m.Get(0); ok || m.Len() != 0 {
		t.Error("a refused key is there")
	}
	if err := m.Set(0, 0); err != nil {
		t.Fatal(err)
	}
	for _, k := range []uint64{1 << 48, math.MaxUint64} {
		if _, ok := m.Get(k); ok || m.Delete(k) {
			t.Errorf("%#x stands for a key of 48 bits", k)
		}
	}
	for _, n := range []int{-1, math.MaxInt} {
		if _, err := NewMap[uint64, uint64](MapConfig{Keys: n}); !errors.Is(err, ErrConfig) {
			t.Errorf("%d keys planned: error %v", n, err)
		}
	}
}

// crowd returns n keys that share both of their buckets: multiples of base plus
// a constant share the first one, and of these every base-th the second.
func crowd(t testing.TB, x *exact, n int) []uint64 {
	t.Helper()
	var keys []uint64
	var bucket uint64
	for number := uint64(7); len(keys) < n; number += x.base << 10 {
		if number > keyMask {
			t.Fatalf("only %d keys", len(keys))
		}
		k := x.key(number)
		p := x.places(k)
		if len(keys) == 0 {
			bucket = p[1].bucket
		}
		if p[0].bucket == 7 && p[1].bucket == bucket {
			keys = append(keys, k)
		}
	}
	return keys
}

// Keys made to collide fill both buckets and the stash; then they are refused,
// after a bounded search and without growth, and all else goes on.
func TestCrowdedMap(t *testing.T) {
	r := seeded.New(t)
	m := newMap(t, MapConfig{Seed: r.Uint64()})
	const fit = 2*mapSlots + stashSize
	keys := crowd(t, &m.exact, fit+20)
	twin := map[uint64]uint64{}
	for i, k := range keys {
		before := m.Stats()
		err := m.Set(k, k)
		if i < fit {
			twin[k] = k
		}
		if (err != nil) != (i >= fit) || err != nil && !errors.Is(err, ErrCrowded) {
			t.Fatalf("key %d of %d that fit: error %v", i, fit, err)
		}
		after := m.Stats()
		if after.Buckets != before.Buckets || after.Work.Searched-before.Work.Searched > 2*mapNodes {
			t.Fatalf("key %d: %+v", i, after)
		}
	}
	full := m.exact.places(keys[0])
	crowded := func(p place) bool { return p.bucket == full[0].bucket || p.bucket == full[1].bucket }
	for range 15_000 {
		k := r.Uint64() & keyMask
		if p := m.exact.places(k); crowded(p[0]) && crowded(p[1]) {
			continue // with a chance of 1 in 4·10^6 it is of the crowd
		}
		if err := m.Set(k, 1); err != nil {
			t.Fatal(err)
		}
		twin[k] = 1
	}
	if err := compare(savedMap(t, m), twin); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys[:fit] { // those in the stash move in as others go
		if !m.Delete(k) {
			t.Fatalf("%#x is gone", k)
		}
		delete(twin, k)
	}
	if err := compare(m, twin); err != nil || m.Stats().Stash != 0 {
		t.Fatal(err, m.Stats())
	}
	if most := m.Stats().Work.MostMoved; most > MaxMoves {
		t.Errorf("a call moved %d entries; the bound is %d", most, MaxMoves)
	}
}

func TestAllStops(t *testing.T) {
	m := newMap(t, MapConfig{})
	for _, k := range crowd(t, &m.exact, 2*mapSlots+3) {
		if err := m.Set(k, k); err != nil {
			t.Fatal(err)
		}
	}
	for stop := 1; stop <= m.Len(); stop++ {
		var seen []uint64
		for k := range m.All() {
			if seen = append(seen, k); len(seen) == stop {
				break
			}
		}
		if slices.Sort(seen); len(slices.Compact(seen)) != stop {
			t.Fatalf("%d keys, want %d", len(seen), stop)
		}
	}
}

func TestManyReaders(t *testing.T) {
	r := seeded.New(t)
	m := newMap(t, MapConfig{})
	keys := make([]uint64, 1000)
	for i := range keys {
		keys[i] = r.Uint64() & keyMask
		if err := m.Set(keys[i], uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			values := make([]uint64, len(keys))
			if hits := m.GetBatch(keys, values, nil); hits != len(keys) {
				t.Errorf("%d hits", hits)
			}
			for i, k := range keys {
				if v, ok := m.Get(k); !ok || v != uint64(i) || values[i] != v {
					t.Errorf("key %#x has %d, %v", k, v, ok)
				}
			}
		})
	}
	readers.Wait()
}
