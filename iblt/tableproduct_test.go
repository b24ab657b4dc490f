package iblt

import (
	"math/rand/v2"
	"testing"
)

// slowProduct multiplies as on paper: shift, add, and reduce bit by bit.
func slowProduct(x, y uint64) (z uint64) {
	for i := 63; i >= 0; i-- {
		carry := z >> 63
		z = z<<1 ^ carry*0x1b // t^64 = t^4 + t^3 + t + 1
		z ^= x * (y >> i & 1)
	}
	return z
}

// TestProduct holds the field against its stupid twin and its laws, at the ends
// and at random: all ones give the fullest columns.
func TestProduct(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 0))
	some := []uint64{0, 1, 2, 0x1b, 1 << 63, 1<<64 - 1, 0x1111111111111111, 0x8888888888888888}
	for range 200 {
		some = append(some, r.Uint64())
	}
	for _, x := range some {
		for _, y := range some {
			if got, want := product(x, y), slowProduct(x, y); got != want {
				t.Fatalf("%x · %x = %x, not %x", x, y, got, want)
			}
		}
		if inverse := reciprocal(x); x != 0 && product(x, inverse) != 1 || x == 0 && inverse != 0 {
			t.Errorf("1/%x = %x", x, inverse)
		}
	}
}

func FuzzProduct(f *testing.F) {
	f.Add(uint64(1<<63), uint64(3))
	f.Fuzz(func(t *testing.T, x, y uint64) {
		if product(x, y) != slowProduct(x, y) || y != 0 && product(product(x, y), reciprocal(y)) != x {
			t.Errorf("%x · %x = %x", x, y, product(x, y))
		}
	})
}
