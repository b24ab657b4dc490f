package iblt

import "math/bits"

// The field of 2^64 elements: 64-bit numbers are polynomials over GF(2), added
// by exclusive or and multiplied modulo t^64 + t^4 + t^3 + t + 1, which is
// irreducible. Each number but zero has a reciprocal, so that any key and any
// value is an element, and each product with a known factor can be divided.

// product multiplies in the field. It takes the same steps whatever it
// multiplies.
func product(x, y uint64) uint64 {
	// The upper half of a product without carries is the lower half of that of
	// the mirror images, mirrored, and one bit on.
	high := bits.Reverse64(carryless(bits.Reverse64(x), bits.Reverse64(y))) >> 1
	// t^64 = t^4 + t^3 + t + 1; what that pushes out at the top, four bits, once
	// more.
	out := high>>63 ^ high>>61 ^ high>>60
	high ^= out
	return carryless(x, y) ^ high ^ high<<1 ^ high<<3 ^ high<<4
}

// carryless is the lower half of the product of two polynomials. Each factor
// is split into four with every fourth bit, so that the carries of ordinary
// multiplications stay in the three bits between and are masked out: column
// 4·i adds up i + 1 ≤ 15 ones at most, and only the last column 16, whose
// carry leaves the word. (The method of T. Pornin, "Constant-time
// multiplication" in BearSSL.)
func carryless(x, y uint64) uint64 {
	const every4 = 0x1111111111111111
	var a, b, sum [4]uint64
	for i := range a {
		a[i], b[i] = x&(every4<<i), y&(every4<<i)
	}
	sum[0] = a[0]*b[0] ^ a[1]*b[3] ^ a[2]*b[2] ^ a[3]*b[1]
	sum[1] = a[0]*b[1] ^ a[1]*b[0] ^ a[2]*b[3] ^ a[3]*b[2]
	sum[2] = a[0]*b[2] ^ a[1]*b[1] ^ a[2]*b[0] ^ a[3]*b[3]
	sum[3] = a[0]*b[3] ^ a[1]*b[2] ^ a[2]*b[1] ^ a[3]*b[0]
	return sum[0]&every4 | sum[1]&(every4<<1) | sum[2]&(every4<<2) | sum[3]&(every4<<3)
}

// reciprocal is a^(2^64 − 2), which is 1/a, or zero for zero: with r = a^(2^n −
// 1), r^(2^n)·r has 2·n for n, and r²·a has n + 1 (Itoh and Tsujii 1988).
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
