package rateless

import (
	"math"
	"math/big"
	"math/bits"
	"sync"
)

// law is the step law of one mapping: the tables that give u^−α for u in (0, 1],
// and the shift c. All of it is made of integers, so that each processor makes
// the same.
type law struct {
	mantissa [mantissas + 1]uint32 // (1 + k/1024)^−α, in units of 2^−32, rounded down; 1 is 2^32 − 1
	exponent [65]uint64            // 2^(α·(z + 1)) for z leading zeros, in units of 2^−32; the largest number where that overflows
	c        uint64                // (1 + 1/α)/2, in units of 2^−32
}

// mantissas is the number of intervals that [1, 2) is cut into. Between them
// u^−α is interpolated linearly, which errs by at most α(α+1)/8 · 2^−20, less
// than 2^−22: one cell in four million.
const (
	mantissaBits = 10
	mantissas    = 1 << mantissaBits
)

// alphas are the mapping's exponents in hundredths: those of the two openings,
// either side of the 1/2 of the rateless IBLT (Yang, Gilad, Alizadeh 2024,
// section 4), then those of the three classes of irregular degree (Goodrich,
// Mitzenmacher 2011, footnote 5). Found by a search for the fewest cells a
// difference at d = 256 to 10^5 (docs/DEGREES.md).
var alphas = [...]uint64{45, 58, 11, 68, 83}

// shares are the upper bounds of the classes in hundredths: 18, 56 and 26 of
// a hundred indices.
var shares = [...]uint64{18, 18 + 56, 100}

// laws are those of alphas.
type laws [len(alphas)]law

// theLaws are made when the first sketch is.
var theLaws = sync.OnceValue(func() *laws {
	roots := halvings()
	var out laws
	for k := range mantissas + 1 {
		log := log2(k)
		for i, alpha := range alphas {
			out[i].mantissa[k] = uint32(power(&roots, scale(log, alpha)) >> 32)
		}
	}
	for i, alpha := range alphas {
		out[i].c = (100 + alpha) << 31 / alpha
		for z := range out[i].exponent {
			out[i].exponent[z] = exponent(&roots, alpha*uint64(z+1))
		}
	}
	return &out
})

// one is 1 in units of 2^−64, as near as 64 bits hold.
const one = math.MaxUint64

// halvings returns 2^(−2^−i) for i = 1 to 64 in units of 2^−64: square roots
// of square roots of one half.
func halvings() (roots [64]uint64) {
	root := new(big.Int).Lsh(big.NewInt(1), 63)
	for i := range roots {
		root.Lsh(root, 64)
		root.Sqrt(root)
		roots[i] = root.Uint64()
	}
	return roots
}

// log2 returns log2(1 + k/1024) in units of 2^−64, for k up to 1024, bit by
// bit: squaring a number doubles its logarithm.
func log2(k int) uint64 {
	if k == mantissas {
		return one
	}
	x := uint64(mantissas+k) << (63 - mantissaBits) // in units of 2^−63, in [1, 2)
	log := uint64(0)
	for range 64 {
		hi, lo := bits.Mul64(x, x) // in units of 2^−126
		log <<= 1
		if hi >= 1<<63 {
			log |= 1
			x = hi
		} else {
			x = hi<<1 | lo>>63
		}
	}
	return log
}

// scale returns x·alpha/100.
func scale(x, alpha uint64) uint64 {
	hi, lo := bits.Mul64(x, alpha)
	q, _ := bits.Div64(hi, lo, 100)
	return q
}

// power returns 2^−x in units of 2^−64, for x in units of 2^−64.
func power(roots *[64]uint64, x uint64) uint64 {
	product := uint64(one)
	for i := range roots {
		if x>>(63-i)&1 == 1 {
			product, _ = bits.Mul64(product, roots[i])
		}
	}
	return product
}

// exponent returns 2^(x/100) in units of 2^−32.
func exponent(roots *[64]uint64, x uint64) uint64 {
	whole, part := x/100, x%100
	switch {
	case whole >= 32:
		return math.MaxUint64
	case part == 0:
		return 1 << (32 + whole)
	}
	// 2^(part/100) = 2 · 2^−(1 − part/100)
	rest, _ := bits.Div64(100-part, 0, 100)
	return power(roots, rest) >> (31 - whole)
}
