// Package keyed has the keys of the structures under bfield/: byte strings and 64-bit
// numbers, alone and in lists. It also has the hash under which each structure knows
// them.
//
//	value, ok := m.Lookup(keyed.Bytes(name))
//	m.LookupBatch(keyed.Numbers(hashes), values, found)
//
// A number has the hashes of its eight bytes, little-endian.
//
// The hash is XXH3 (Collet; github.com/zeebo/xxh3). It is fast, and as good as random for
// keys that were not made to break it. It is no secret function. An adversary that knows
// the seed can make keys that collide. A structure full of those answers wrongly or
// cannot be built. Where keys are from an adversary, hash them first by a keyed hash
// (HighwayHash, SipHash). Then give the 64-bit results as numbers.
package keyed

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Key is a byte string or a number. The zero Key is the number 0.
type Key struct {
	bytes  []byte // nil: number is the key
	number uint64
}

// Bytes is the key that b holds, nil like the empty one. It keeps b, and copies nothing.
func Bytes(b []byte) Key {
	if b == nil {
		b = []byte{}
	}
	return Key{bytes: b}
}

// Number is the key n.
func Number(n uint64) Key { return Key{number: n} }

// Hash returns 64 bits of the key under a seed. For numbers it is a bijection under each
// seed, because each of XXH3's steps for eight bytes can be undone. So numbers that
// differ never collide.
func (k Key) Hash(seed uint64) uint64 {
	if k.bytes == nil {
		return ofNumber(k.number, seed)
	}
	return xxh3.HashSeed(k.bytes, seed)
}

// Hash128 returns 128 bits of the key under a seed.
func (k Key) Hash128(seed uint64) (hi, lo uint64) {
	var eight [8]byte
	b := k.bytes
	if b == nil {
		binary.LittleEndian.PutUint64(eight[:], k.number)
		b = eight[:]
	}
	h := xxh3.Hash128Seed(b, seed)
	return h.Hi, h.Lo
}

// Equal reports whether two keys of one kind are the same. Two of different kinds are
// not, although a number and its eight bytes have the same hashes.
func (k Key) Equal(l Key) bool {
	return k.number == l.number && (k.bytes == nil) == (l.bytes == nil) && bytes.Equal(k.bytes, l.bytes)
}

func ofNumber(n, seed uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	return xxh3.HashSeed(b[:], seed)
}
