package keyhash

import "math/bits"

// P = 2^42 − 11 is the largest prime below 2^42; indices, checksums and the sums of
// cells are numbers modulo P. A prime so close under a power of two reduces without
// division. 2^42 ≡ 11, so the part of a product above bit 42 is folded back after
// multiplying it by 11.
const P = 1<<42 - 11

const (
	foldBits = 42
	foldMask = 1<<foldBits - 1
	foldBy   = 1<<foldBits - P
)

// Add returns a + b mod P, for a and b below P.
func Add(a, b uint64) uint64 {
	s := a + b
	if s >= P {
		s -= P
	}
	return s
}

// Sub returns a − b mod P, for a and b below P.
func Sub(a, b uint64) uint64 {
	d := a - b
	if a < b {
		d += P
	}
	return d
}

// Reduce returns x mod P.
func Reduce(x uint64) uint64 {
	x = x&foldMask + foldBy*(x>>foldBits) // below 2^42 + 2^26
	if x >= P {
		x -= P
	}
	return x
}

// Mul returns a·b mod P, for a and b below 2^42.
func Mul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	// The product has 84 bits; folded, less than 2^46.
	return Reduce(lo&foldMask + foldBy*(hi<<(64-foldBits)|lo>>foldBits))
}

// Inv returns the number whose product with a is 1 mod P; Inv(0) is 0. It is
// the power P − 2 (Fermat), whose binary form 1…1 (38 ones) 0011 needs 41
// squarings and 8 products.
func Inv(a uint64) uint64 {
	x2 := Mul(Mul(a, a), a) // exponent 2^2 − 1, and so on
	x4 := Mul(square(x2, 2), x2)
	x8 := Mul(square(x4, 4), x4)
	x9 := Mul(Mul(x8, x8), a)
	x18 := Mul(square(x9, 9), x9)
	x19 := Mul(Mul(x18, x18), a)
	x38 := Mul(square(x19, 19), x19)
	return Mul(square(x38, 4), x2)
}

func square(a uint64, times int) uint64 {
	for range times {
		a = Mul(a, a)
	}
	return a
}

// InvAll replaces each number of a by its inverse, for numbers in [1, P−1]. It uses one
// Inv in all and three products a number (Montgomery 1987, section 10.3.1). The inverse
// of the product of all is taken apart again from the end. scratch must be as long as
// a; its content is lost. A zero in a makes all results zero.
func InvAll(a, scratch []uint64) {
	product := uint64(1)
	for i, x := range a {
		scratch[i] = product
		product = Mul(product, x)
	}
	inverse := Inv(product)
	for i := len(a) - 1; i >= 0; i-- {
		x := a[i]
		a[i] = Mul(inverse, scratch[i])
		inverse = Mul(inverse, x)
	}
}
