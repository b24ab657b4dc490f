package keyhash

import "math/bits"

const (
	// CheckBits is how many of a checksum's 42 bits, the lowest, check the others.
	CheckBits = 8
	// RestBits is how many bits of a checksum tell what is stored.
	RestBits = 34
)

// Seal is the checksum that says rest of an index, a number from 1 to P − 1. It is rest
// above a hash of eight bits of index and rest. A number that is no checksum of its index
// is told by it in 255 of 256 cases. 0 and 2^34 − 1 are taken for their neighbours, so
// that the checksum is neither 0 nor above P − 1. rest must be below 2^34.
//
// The hash has no key. It has to tell a checksum from the sum of several, all of which
// follow from keyed hashes. A member could compute it with a key as well.
func Seal(index, rest uint64) uint64 {
	rest = min(max(rest, 1), 1<<RestBits-2)
	return rest<<CheckBits | seal(index, rest)
}

// Sealed reports whether a number can be a checksum of this index.
func Sealed(index, checksum uint64) bool {
	rest := checksum >> CheckBits
	return rest-1 < 1<<RestBits-2 && seal(index, rest) == checksum&(1<<CheckBits-1)
}

// seal is two rounds of multiply and fold, with the constants of wyhash (Wang Yi
// 2019). Their highest bits are set, so that no factor is zero.
func seal(index, rest uint64) uint64 {
	x := fold(index^0xa0761d6478bd642f, rest^0xe7037ed1a0b428db)
	return fold(x^0x8ebc6af09c88c6e3, 0x589965cc75374cc3) & (1<<CheckBits - 1)
}

// fold is the upper half of the 128-bit product xor its lower half.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
