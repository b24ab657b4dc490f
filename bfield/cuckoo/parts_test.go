package cuckoo

import (
	"math"
	"testing"

	"github.com/syncd-io/syncd/internal/seeded"
)

func TestMixerIsABijection(t *testing.T) {
	r := seeded.New(t)
	for range 200_000 {
		m := mixer{r.Uint64()}
		k := key(r, 1<<48)
		x0 := m.first(k)
		x1 := second(x0)
		if m.key(x0) != k || unsecond(x1) != x0 || x0 > keyMask || x1 > keyMask {
			t.Fatalf("seed %#x, key %#x: x0 %#x, x1 %#x, back %#x, %#x", m.seed, k, x0, x1, m.key(x0), unsecond(x1))
		}
	}
}

// Keys in a row, and keys that differ in high bits only, fill a Map like random
// ones do: chi-squared of their numbers mod the buckets is near what chance
// gives, within six standard deviations.
func TestMixerSpreads(t *testing.T) {
	const buckets, keys = 4099, 400_000
	s := spreadOf(buckets, buckets)
	for _, seed := range []uint64{0, 1, 0xfeed_beef_1234_5678} {
		m := mixer{seed}
		for _, stride := range []uint64{1, 2, 3, 1 << 16, 1 << 24, 1 << 29, buckets, buckets << 8} {
			var first, both [buckets]int
			for i := range uint64(keys) {
				x0 := m.first(i * stride & keyMask)
				a, _ := s.divide(x0)
				b, _ := s.divide(second(x0))
				first[a]++
				both[(a+2*b)%buckets]++
			}
			for name, counts := range map[string][buckets]int{"first": first, "both": both} {
				sum := 0.0
				for _, n := range counts {
					d := float64(n) - float64(keys)/buckets
					sum += d * d
				}
				sum /= float64(keys) / buckets
				// Keys that differ in few bits may spread more evenly than
				// chance does; that does no harm.
				if sigmas := (sum - buckets) / math.Sqrt(2*buckets); sigmas > 6 {
					t.Errorf("seed %#x, stride %#x, %s: %.1f standard deviations", seed, stride, name, sigmas)
				}
			}
		}
	}
}

func TestDivide(t *testing.T) {
	r := seeded.New(t)
	for range 300_000 {
		base := 2 + r.Uint64N(1<<r.UintN(31)+1)
		s := spreadOf(base, base)
		x := r.Uint64() >> (16 + r.UintN(48))
		if r.IntN(2) == 0 { // around a multiple
			x = (x/base*base + r.Uint64N(3) - 1) & keyMask
		}
		if q, rest := s.divide(x); q != x%base || rest != x/base {
			t.Fatalf("%d div %d: %d rest %d", x, base, rest, q)
		}
	}
}

// Each split leaves every number where it was, or takes it from the parent to
// the child; and the buckets are those of x mod base·2^level.
func TestSplit(t *testing.T) {
	r := seeded.New(t)
	for _, base := range []uint64{2, 3, 7, 64, 100} {
		s := spreadOf(base, base)
		numbers := make([]uint64, 2000)
		for i := range numbers {
			numbers[i] = r.Uint64() & keyMask
		}
		at := func(x uint64) uint64 { return s.at(s.divide(x)) }
		for range 9 * base {
			before := make([]uint64, len(numbers))
			for i, x := range numbers {
				before[i] = at(x)
			}
			parent, child := s.split()
			if s != spreadOf(base, s.buckets) {
				t.Fatalf("base %d: %+v, want %+v", base, s, spreadOf(base, s.buckets))
			}
			for i, x := range numbers {
				want := x % (base << (s.level + 1))
				if want >= s.buckets {
					want = x % (base << s.level)
				}
				if bucket, r := s.masked(x); s.mask != 0 && (bucket != want || r != x/base) {
					t.Fatalf("base %d, %d buckets: %d is masked to %d and %d, want %d and %d", base, s.buckets, x, bucket, r, want, x/base)
				}
				if now := at(x); now != want || now != before[i] && (before[i] != parent || now != child) {
					t.Fatalf("base %d, split %d into %d: %d went from %d to %d, want %d", base, parent, child, x, before[i], now, want)
				}
			}
		}
	}
}

func TestLine(t *testing.T) {
	r := seeded.New(t)
	for range 2000 {
		var l line
		var twin [mapSlots]struct{ tag, value uint64 }
		for range 30 {
			i := r.IntN(mapSlots)
			tag := 2 + r.Uint64N(1<<37-2)
			switch r.IntN(4) {
			case 0:
				tag = 0
			case 1: // the low parts agree
				tag = max(2, twin[r.IntN(mapSlots)].tag^1<<(16+r.UintN(21)))
			}
			value := r.Uint64() & keyMask
			l.set(i, tag, value)
			twin[i].tag, twin[i].value = tag, value
			if l != lineOf(l.words()) {
				t.Fatal("it differs after it was saved")
			}
			for i := range twin {
				if l.tagAt(i) != twin[i].tag || l.valueAt(i) != twin[i].value {
					t.Fatalf("slot %d has %#x: %#x, want %#x", i, l.tagAt(i), l.valueAt(i), twin[i])
				}
			}
			for _, tag := range []uint64{0, tag, 2 + r.Uint64N(1<<37-2), tag ^ 1<<36} {
				found := l.find(tag)
				if found >= 0 && twin[found].tag != tag {
					t.Fatalf("find(%#x) = %d, which has %#x", tag, found, twin[found].tag)
				}
				for i := range twin {
					if twin[i].tag == tag && found < 0 {
						t.Fatalf("find(%#x) does not see slot %d", tag, i)
					}
				}
			}
		}
	}
}

// The limits of the load, from their definition.
func TestLoadsAreThoseOfTheory(t *testing.T) {
	atLeast := func(mean float64, n int) float64 { // of a Poisson number
		p, term := 1.0, math.Exp(-mean)
		for i := range n {
			p -= term
			term *= mean / float64(i+1)
		}
		return p
	}
	for h := 2; h <= maxHashes; h++ {
		for b := 1; b <= maxSlots; b++ {
			if h == 2 && b == 1 {
				continue // no ξ: cycles appear at 1/2 (Pagh, Rodler 2001)
			}
			low, high := 1e-6, 60.0
			for range 100 {
				if x := (low + high) / 2; x*atLeast(x, b) < float64(h*b)*atLeast(x, b+1) {
					low = x
				} else {
					high = x
				}
			}
			want := low / (float64(h*b) * math.Pow(atLeast(low, b), float64(h-1)))
			if math.Abs(loads[h][b]-want) > 1e-5 {
				t.Errorf("H = %d, B = %d: %.6f, want %.6f", h, b, loads[h][b], want)
			}
		}
	}
}
