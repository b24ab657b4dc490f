package main

import (
	"math/big"
	"math/bits"
)

// form is a short cell: two sums modulo the largest prime below 2^bits, and a
// count of countBits. The low checkBits of a checksum are a hash of its index and
// its other bits, so that it checks itself.
type form struct {
	bits, checkBits int
	p               uint64
}

// countBits is the width of the count.
const countBits = 4

func newForm(width, check int) form {
	p := uint64(1)<<width - 1
	for !new(big.Int).SetUint64(p).ProbablyPrime(20) {
		p -= 2
	}
	return form{width, check, p}
}

// bytes is the size of a cell.
func (f *form) bytes() float64 { return float64(2*f.bits+countBits) / 8 }

func (f *form) add(a, b uint64) uint64 {
	if a += b; a >= f.p {
		a -= f.p
	}
	return a
}

func (f *form) neg(a uint64) uint64 {
	if a == 0 {
		return 0
	}
	return f.p - a
}

func (f *form) mul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	// 2^bits is as much as its distance to p.
	mask, by := uint64(1)<<f.bits-1, uint64(1)<<f.bits-f.p
	x := lo&mask + by*(hi<<(64-f.bits)|lo>>f.bits)
	x = x&mask + by*(x>>f.bits)
	if x >= f.p {
		x -= f.p
	}
	return x
}

func (f *form) inverse(a uint64) uint64 {
	r := uint64(1)
	for e := f.p - 2; e > 0; e >>= 1 {
		if e&1 == 1 {
			r = f.mul(r, a)
		}
		a = f.mul(a, a)
	}
	return r
}

// ownCheck is what the low bits of a checksum must be.
func (f *form) ownCheck(w *words, k, rest uint64) uint64 {
	x := fold(k^w.check[0], rest^w.check[1])
	return fold(x^w.check[2], 0x9e3779b97f4a7c15) & (1<<f.checkBits - 1)
}

// fits reports whether v can be a checksum of index k.
func (f *form) fits(w *words, k, v uint64) bool {
	return v != 0 && f.ownCheck(w, k, v>>f.checkBits) == v&(1<<f.checkBits-1)
}
