// Package keyed turns the keys of the structures under bfield/ into uniform
// 64-bit or 128-bit numbers, under a 64-bit seed.
//
// The hash is XXH3 (Collet; github.com/zeebo/xxh3): fast, and as good as random
// for keys that were not made to break it. It is no secret function. An
// adversary that knows the seed can make keys that collide, and a structure full of those
// answers wrongly or cannot be built. Where keys come from an adversary, hash
// them first by a keyed hash (HighwayHash, SipHash) and hand in the 64-bit
// results: the structures take such numbers by their methods named …Hash.
package keyed

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Bytes returns 64 bits of a key under the seed.
func Bytes(key []byte, seed uint64) uint64 {
	return xxh3.HashSeed(key, seed)
}

// Bytes128 returns 128 bits of a key under the seed.
func Bytes128(key []byte, seed uint64) (hi, lo uint64) {
	h := xxh3.Hash128Seed(key, seed)
	return h.Hi, h.Lo
}

// Uint64 returns Bytes of the eight bytes of key, little-endian. For one seed
// it is a bijection (each of XXH3's steps for eight bytes can be undone), so
// different keys never collide.
func Uint64(key, seed uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], key)
	return xxh3.HashSeed(b[:], seed)
}

// Uint128 returns Bytes128 of the eight bytes of key, little-endian.
func Uint128(key, seed uint64) (hi, lo uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], key)
	h := xxh3.Hash128Seed(b[:], seed)
	return h.Hi, h.Lo
}
