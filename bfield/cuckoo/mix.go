package cuckoo

// keyBits are the bits of a Map's keys and values.
const (
	keyBits = 48
	keyMask = 1<<keyBits - 1
)

// mixer turns keys of 48 bits into two numbers, x0 and x1, that look random and
// independent. Each has 48 bits. Each of the two steps is a bijection and can
// be undone. The bucket and the tag of an entry give its number back, and its
// number gives the key. So the key itself need not be stored.
//
// A step multiplies by odd constants and folds the upper half into the lower
// one. Both have an inverse mod 2^48. (The constants are those of the finalizer
// of MurmurHash3 and of SplitMix64, cut to 48 bits.)
type mixer struct{ seed uint64 }

const (
	mul1 = 0xff51afd7ed558ccd & keyMask
	mul2 = 0xc4ceb9fe1a85ec53 & keyMask
	mul3 = 0xbf58476d1ce4e5b9 & keyMask
	mul4 = 0x94d049bb133111eb & keyMask
)

// Their inverses mod 2^48.
var inv1, inv2, inv3, inv4 = inverse(mul1), inverse(mul2), inverse(mul3), inverse(mul4)

// inverse is 1/odd mod 2^48, by Newton's iteration. Each step doubles the
// number of right low bits, of which odd itself has three.
func inverse(odd uint64) uint64 {
	x := odd
	for range 4 {
		x *= 2 - odd*x
	}
	return x & keyMask
}

// fold is its own inverse.
func fold(x uint64) uint64 { return x ^ x>>(keyBits/2) }

// first returns x0 of a key.
func (m mixer) first(key uint64) uint64 {
	x := fold((key ^ m.seed) * mul1 & keyMask)
	return fold((x + m.seed>>(64-keyBits)) * mul2 & keyMask)
}

// key undoes first.
func (m mixer) key(x uint64) uint64 {
	x = fold(x)*inv2 - m.seed>>(64-keyBits)
	return (fold(x&keyMask)*inv1 ^ m.seed) & keyMask
}

// second returns x1 of a key whose x0 is known.
func second(x0 uint64) uint64 {
	x := fold(x0 * mul3 & keyMask)
	return fold(x * mul4 & keyMask)
}

// unsecond undoes second.
func unsecond(x1 uint64) uint64 {
	x := fold(x1) * inv4 & keyMask
	return fold(x) * inv3 & keyMask
}
