package iblt

import (
	"encoding/binary"
	"math/bits"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// sipKey is a key of SipHash.
type sipKey [2]uint64

// tableKeys derives the keys of a table's hash functions from its seed. They
// are for places and G1, for G2, and for the permutations of quotients.
func tableKeys(seed uint64) (keys, values, permutations sipKey) {
	var key keyhash.Key
	binary.LittleEndian.PutUint64(key[:], seed)
	a := key.Digest([]byte("iblt table"), nil, 0, nil)
	b := key.Digest([]byte("iblt table"), nil, 1, nil)
	return sipKey{a[0], a[1]}, sipKey{a[2], a[3]}, sipKey{b[0], b[1]}
}

// sum is SipHash-1-3 of the eight little-endian bytes of x (Aumasson and
// Bernstein 2012). Hash tables use it with one and three rounds, Rust's among
// them. It is keyed: a party that chooses the keys of a table but does not know
// its seed cannot choose their cells.
func (k sipKey) sum(x uint64) uint64 {
	v0 := k[0] ^ 0x736f6d6570736575
	v1 := k[1] ^ 0x646f72616e646f6d
	v2 := k[0] ^ 0x6c7967656e657261
	v3 := k[1] ^ 0x7465646279746573
	v3 ^= x
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= x
	const length = 8 << 56 // the last block: no bytes left, and the length
	v3 ^= length
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= length
	v2 ^= 0xff
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v1
	v0 += v3
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}

// odd is the golden ratio's fraction, 2^64/φ: steps of it visit all 64-bit
// numbers, near ones far apart.
const odd = 0x9e3779b97f4a7c15

// mix64 spreads each bit of x over all (the finalizer of SplitMix64, Steele,
// Lea and Flood 2014). It is a bijection.
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
