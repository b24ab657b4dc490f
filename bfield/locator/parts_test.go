package locator

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/seeded"
)

func TestKeyIsABijection(t *testing.T) {
	r := seeded.New(t)
	for range 100_000 {
		l := &Locator{config: Config{Seed: r.Uint64()}}
		h := r.Uint64() >> r.IntN(64)
		if got := l.hash(l.key(h)); got != h {
			t.Fatalf("seed %x: %x became %x", l.config.Seed, h, got)
		}
	}
}

func TestPacked(t *testing.T) {
	r := seeded.New(t)
	for width := uint(1); width <= 64; width++ {
		want := make([]uint64, 200)
		p := newPacked(len(want), width)
		for i := range want {
			want[i] = r.Uint64() & (1<<width - 1)
			p.put(i, want[i])
		}
		for i, x := range want {
			if got := p.at(i); got != x {
				t.Fatalf("width %d: number %d is %x, not %x", width, i, got, x)
			}
		}
		if !p.clean(len(want)) {
			t.Fatalf("width %d: not clean", width)
		}
	}
}

// entries are n of them, ascending; dense ones share buckets and neighbours.
func entriesOf(r *rand.Rand, n int, dense bool) []entry {
	seen := map[uint64]bool{}
	for len(seen) < n {
		switch {
		case dense:
			seen[1<<63+r.Uint64N(uint64(2*n))] = true
		case len(seen) == 0:
			seen[0], seen[^uint64(0)] = true, n > 1
			if n == 1 {
				delete(seen, ^uint64(0))
			}
		default:
			seen[r.Uint64()] = true
		}
	}
	var entries []entry
	for key := range seen {
		entries = append(entries, entry{key, uint32(r.IntN(512))})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	return entries
}

func TestRun(t *testing.T) {
	r := seeded.New(t)
	for n := range 200 {
		for _, dense := range []bool{false, true} {
			entries := entriesOf(r, n, dense)
			run := newRun(n, 9, slices.Values(entries))
			for i, e := range entries {
				if code, ok := run.get(e.key); !ok || code != e.code {
					t.Fatalf("%d entries: %x is %d, %v", n, e.key, code, ok)
				}
				if _, ok := run.get(e.key + 1); e.key+1 != 0 && ok != (i+1 < n && entries[i+1].key == e.key+1) {
					t.Fatalf("%d entries: %x is there: %v", n, e.key+1, ok)
				}
			}
			if got := slices.Collect(run.all); !slices.Equal(got, entries) {
				t.Fatalf("%d entries: %v, want %v", n, got, entries)
			}
		}
	}
}

// overlay beside a plain map.
func TestOverlay(t *testing.T) {
	r := seeded.New(t)
	for range 300 {
		old := entriesOf(r, r.IntN(60), true)
		changes := entriesOf(r, r.IntN(60), true)
		want := map[uint64]uint32{}
		for _, e := range old {
			want[e.key] = e.code
		}
		keep := make([]bool, len(changes))
		for i, e := range changes {
			if keep[i] = r.IntN(2) == 0; keep[i] {
				want[e.key] = e.code
			} else {
				delete(want, e.key)
			}
		}
		got := newRun(len(old), 9, slices.Values(old)).overlay(9, changes, func(i int) bool { return keep[i] })
		if got.len() != len(want) {
			t.Fatalf("%d entries, want %d", got.len(), len(want))
		}
		for key, code := range want {
			if have, ok := got.get(key); !ok || have != code {
				t.Fatalf("%x is %d, %v; want %d", key, have, ok, code)
			}
		}
	}
}

func TestTail(t *testing.T) {
	r := seeded.New(t)
	tail := newTail(0)
	want := map[uint64]uint32{}
	keys := []uint64{0, 1, ^uint64(0), ^uint64(0) - 1} // the last ones go round the end
	for !tail.full() {
		if r.IntN(2) == 0 {
			keys = append(keys, r.Uint64()>>(r.IntN(2)*40))
		}
		key, code := keys[r.IntN(len(keys))], 1+r.Uint32N(1000)
		tail.put(key, code)
		want[key] = code
	}
	if tail.n != len(want) || tail.n != leastTail {
		t.Fatalf("%d keys, want %d", tail.n, len(want))
	}
	for key, code := range want {
		if got := tail.get(key); got != code {
			t.Fatalf("%x is %d, want %d", key, got, code)
		}
	}
	for range 1000 {
		if key := r.Uint64(); want[key] == 0 && tail.get(key) != 0 {
			t.Fatalf("%x is there", key)
		}
	}
	if sorted := tail.sorted(); len(sorted) != len(want) || !slices.IsSortedFunc(sorted, func(a, b entry) int {
		if a.key < b.key {
			return -1
		}
		return 1
	}) {
		t.Fatal("not sorted")
	}
}
