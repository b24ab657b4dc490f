package keyhash

import "math/bits"

// P = 2^48 − 59 is the largest prime below 2^48; indices, checksums and the
// sums of cells are numbers modulo P. A prime so close under a power of two
// reduces without division: 2^48 ≡ 59, so the part of a product above bit 48
// is folded back after multiplying it by 59.
const P = 1<<48 - 59

const (
	foldBits = 48
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

// Mul returns a·b mod P, for a and b below 2^48.
func Mul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	// The product has 96 bits. The first fold leaves less than 2^54, the
	// second less than 2^48 + 2^12.
	x := lo&foldMask + foldBy*(hi<<(64-foldBits)|lo>>foldBits)
	x = x&foldMask + foldBy*(x>>foldBits)
	if x >= P {
		x -= P
	}
	return x
}

// Inv returns the number whose product with a is 1 mod P; Inv(0) is 0. It is
// the power P − 2 (Fermat), whose binary form 1…1 (42 ones) 000011 needs 47
// squarings and 8 products.
func Inv(a uint64) uint64 {
	x2 := Mul(Mul(a, a), a) // exponent 2^2 − 1, and so on
	x4 := Mul(square(x2, 2), x2)
	x5 := Mul(Mul(x4, x4), a)
	x10 := Mul(square(x5, 5), x5)
	x20 := Mul(square(x10, 10), x10)
	x21 := Mul(Mul(x20, x20), a)
	x42 := Mul(square(x21, 21), x21)
	return Mul(square(x42, 6), x2)
}

func square(a uint64, times int) uint64 {
	for range times {
		a = Mul(a, a)
	}
	return a
}

// InvAll replaces each number of a by its inverse, for numbers in [1, P−1]. It
// uses one Inv in all and three products a number (Montgomery 1987, section
// 10.3.1): the inverse of the product of all is taken apart again from the
// end. scratch must be as long as a; its content is lost. A zero in a makes
// all results zero.
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
