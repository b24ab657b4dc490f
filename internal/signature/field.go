package signature

import (
	"encoding/binary"
	"math/bits"
)

// element is an element of the field of integers modulo p = 2^255 − 19, in five limbs of
// 51 bits, little-endian. That is the form of curve25519-voi on machines of 64 bits. A
// limb may have some bits more, less than 2^54. All that is done with one takes the same
// time for all of them.
type element [5]uint64

const (
	limb     = 51
	limbMask = 1<<limb - 1
)

// wideLimb is a sum of products of two limbs.
type wideLimb struct{ high, low uint64 }

func (w wideLimb) plus(a, b uint64) wideLimb {
	high, low := bits.Mul64(a, b)
	low, carry := bits.Add64(low, w.low, 0)
	high, _ = bits.Add64(high, w.high, carry)
	return wideLimb{high, low}
}

// above is what stands above the limb.
func (w wideLimb) above() uint64 { return w.high<<(64-limb) | w.low>>limb }

// times is the product of two elements. 2^255 is 19, so what stands above the fifth limb
// goes back into the first, 19 times.
func (a *element) times(b *element) (c element) {
	b1, b2, b3, b4 := 19*b[1], 19*b[2], 19*b[3], 19*b[4]
	w0 := wideLimb{}.plus(a[0], b[0]).plus(a[1], b4).plus(a[2], b3).plus(a[3], b2).plus(a[4], b1)
	w1 := wideLimb{}.plus(a[0], b[1]).plus(a[1], b[0]).plus(a[2], b4).plus(a[3], b3).plus(a[4], b2)
	w2 := wideLimb{}.plus(a[0], b[2]).plus(a[1], b[1]).plus(a[2], b[0]).plus(a[3], b4).plus(a[4], b3)
	w3 := wideLimb{}.plus(a[0], b[3]).plus(a[1], b[2]).plus(a[2], b[1]).plus(a[3], b[0]).plus(a[4], b4)
	w4 := wideLimb{}.plus(a[0], b[4]).plus(a[1], b[3]).plus(a[2], b[2]).plus(a[3], b[1]).plus(a[4], b[0])
	c = element{
		w0.low&limbMask + 19*w4.above(),
		w1.low&limbMask + w0.above(),
		w2.low&limbMask + w1.above(),
		w3.low&limbMask + w2.above(),
		w4.low&limbMask + w3.above(),
	}
	c.carry()
	return c
}

// carry leaves limbs of 51 bits, and a few more in the first.
func (a *element) carry() {
	c0, c1, c2, c3, c4 := a[0]>>limb, a[1]>>limb, a[2]>>limb, a[3]>>limb, a[4]>>limb
	*a = element{
		a[0]&limbMask + 19*c4,
		a[1]&limbMask + c0,
		a[2]&limbMask + c1,
		a[3]&limbMask + c2,
		a[4]&limbMask + c3,
	}
}

// squared is the element's 2^n-th power.
func (a element) squared(n int) element {
	for range n {
		a = a.times(&a)
	}
	return a
}

// inverse is the element's power of p − 2, by the usual chain of 254 squarings and 11
// products (Bernstein, "Curve25519", 2006). Names tell the exponent: x5 is that of 2^5 − 1.
func (a *element) inverse() element {
	x := func(a, b element) element { return a.times(&b) }
	two := a.squared(1)
	nine := x(two.squared(2), *a)
	eleven := x(nine, two)
	x5 := x(eleven.squared(1), nine)
	x10 := x(x5.squared(5), x5)
	x20 := x(x10.squared(10), x10)
	x40 := x(x20.squared(20), x20)
	x50 := x(x40.squared(10), x10)
	x100 := x(x50.squared(50), x50)
	x200 := x(x100.squared(100), x100)
	x250 := x(x200.squared(50), x50)
	return x(x250.squared(5), eleven)
}

// bytes is the least number, little-endian, that the element is.
func (a element) bytes() (b [32]byte) {
	a.carry()
	a.carry()
	// a < 2^255 + 2^13: it is p or more exactly where a + 19 has 256 bits.
	over := (a[0] + 19) >> limb
	for i := 1; i < 5; i++ {
		over = (a[i] + over) >> limb
	}
	a[0] += 19 * over
	for i := range 4 {
		a[i+1] += a[i] >> limb
		a[i] &= limbMask
	}
	a[4] &= limbMask // what stands above was taken off by 19 times over
	binary.LittleEndian.PutUint64(b[0:], a[0]|a[1]<<51)
	binary.LittleEndian.PutUint64(b[8:], a[1]>>13|a[2]<<38)
	binary.LittleEndian.PutUint64(b[16:], a[2]>>26|a[3]<<25)
	binary.LittleEndian.PutUint64(b[24:], a[3]>>39|a[4]<<12)
	return b
}
