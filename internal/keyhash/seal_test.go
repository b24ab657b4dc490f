package keyhash

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSeal: what is sealed is a checksum and says its rest, and no other number
// with the same rest is.
func TestSeal(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	rests := []uint64{0, 1, 2, 1<<RestBits - 3, 1<<RestBits - 2, 1<<RestBits - 1}
	for range 500 {
		rests = append(rests, r.Uint64N(1<<RestBits))
	}
	for _, rest := range rests {
		k := 1 + r.Uint64N(P-1)
		v := Seal(k, rest)
		if want := min(max(rest, 1), 1<<RestBits-2); v>>CheckBits != want || v == 0 || v >= P {
			t.Fatalf("Seal(%d, %d) = %d (seed %d)", k, rest, v, seed)
		}
		for other := range uint64(1 << CheckBits) {
			if w := v&^(1<<CheckBits-1) | other; Sealed(k, w) != (w == v) {
				t.Fatalf("Sealed(%d, %d) = %v, and Seal(%d, %d) = %d (seed %d)", k, w, w != v, k, rest, v, seed)
			}
		}
	}
	for _, none := range []uint64{0, 1, 255, P, 1<<42 - 1, 1 << 42, 1<<64 - 1} {
		for k := range uint64(2000) {
			if Sealed(k, none) {
				t.Fatalf("Sealed(%d, %d)", k, none)
			}
		}
	}
}

// TestSealsAreEvenlySpread: checksums and indices in rows, a change of one of them and
// sums of two pairs pass with probability 1/256.
func TestSealsAreEvenlySpread(t *testing.T) {
	const seed, n = 2, 1_000_000
	r := rand.New(rand.NewPCG(seed, 0))
	for name, number := range map[string]func(i uint64) (k, v uint64){
		"index and checksum in rows": func(i uint64) (uint64, uint64) { return 1 + i%1000, 256 + i/1000 },
		"the next index":             func(i uint64) (uint64, uint64) { k := 1 + r.Uint64N(P-2); return k + 1, Seal(k, i) },
		"the next rest":              func(i uint64) (uint64, uint64) { k := 1 + r.Uint64N(P-1); return k, Seal(k, i) + 256 },
		"two pairs": func(i uint64) (uint64, uint64) {
			k, l := 1+i, 1+r.Uint64N(P-1)
			v, w := Seal(k, r.Uint64N(1<<RestBits)), Seal(l, 5)
			sum := Add(v, w)
			return Mul(Add(Mul(k, v), Mul(l, w)), Inv(sum)), sum
		},
	} {
		passed := 0
		for i := range uint64(n) {
			if Sealed(number(i)) {
				passed++
			}
		}
		const want = n / 256.0
		t.Logf("%s: %d of %d pass, want %.0f", name, passed, n, want)
		if math.Abs(float64(passed)-want) > 5.5*math.Sqrt(want) {
			t.Errorf("%s: %d of %d pass, want %.0f (seed %d)", name, passed, n, want, seed)
		}
	}
}
