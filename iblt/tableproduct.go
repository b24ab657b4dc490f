package iblt

import "math/bits"

// The field of 2^64 elements: 64-bit numbers are polynomials over GF(2). They
// are added by exclusive or and multiplied modulo t^64 + t^4 + t^3 + t + 1,
// which is irreducible. Each number but zero has a reciprocal. So any key and
// any value is an element, and each product with a known factor can be
// divided.

// product multiplies in the field. It takes the same steps whatever it
// multiplies.
func product(x, y uint64) uint64 {
	// The upper half of a product without carries is that of the mirror images:
	// their lower half, mirrored, and one bit on.
	high := bits.Reverse64(carryless(bits.Reverse64(x), bits.Reverse64(y))) >> 1
	// t^64 = t^4 + t^3 + t + 1; what that pushes out at the top, four bits, once
	// more.
	out := high>>63 ^ high>>61 ^ high>>60
	high ^= out
	return carryless(x, y) ^ high ^ high<<1 ^ high<<3 ^ high<<4
}

// carryless is the lower half of the product of two polynomials. Each factor
// is split into four with every fourth bit, so that the carries of ordinary
// multiplications stay in the three bits between. There they are masked out.
// Column 4·i adds up i + 1 ≤ 15 ones at most. Only the last column has 16,
// and its carry leaves the word. (The method of T. Pornin, "Constant-time
// multiplication" in BearSSL.)
func carryless(x, y uint64) uint64 {
	const m0, m1, m2, m3 = 0x1111111111111111, 0x2222222222222222, 0x4444444444444444, 0x8888888888888888
	a0, a1, a2, a3 := x&m0, x&m1, x&m2, x&m3
	b0, b1, b2, b3 := y&m0, y&m1, y&m2, y&m3
	return (a0*b0^a1*b3^a2*b2^a3*b1)&m0 |
		(a0*b1^a1*b0^a2*b3^a3*b2)&m1 |
		(a0*b2^a1*b1^a2*b0^a3*b3)&m2 |
		(a0*b3^a1*b2^a2*b1^a3*b0)&m3
}

// reciprocal is a^(2^64 − 2), which is 1/a, or zero for zero (Itoh and Tsujii
// 1988). With r = a^(2^n − 1), the power r^(2^n)·r has 2·n for n, and r²·a has
// n + 1.
func reciprocal(a uint64) uint64 {
	r := a
	for n := 1; n < 63; n = 2*n + 1 {
		s := r
		for range n {
			s = product(s, s)
		}
		s = product(s, r)
		r = product(product(s, s), a)
	}
	return product(r, r)
}
