// Package layout is the stored form of what the stores on disk and in databases keep
// alike. It has seals, the head of a record, entries of the change log, and the head of
// a namespace. Where these stand is the store's own.
//
// All integers are big-endian.
package layout

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// The kinds of entry, in seals and in the keys of stores that have keys.
const (
	KindIndex = 'i'
	KindKept  = 'k'
	KindLog   = 'l'
	KindMeta  = 'm'
)

const (
	// NumberSize is the length of an index or a checksum: they are below 2^42.
	NumberSize = 6
	// SealSize is the length of a seal.
	SealSize = 8
)

// Append48 appends an index or a checksum.
func Append48(b []byte, n uint64) []byte {
	return append(b, byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// Read48 reads what Append48 has appended.
func Read48(b []byte) uint64 {
	_ = b[5]
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}

// Seed makes a seal depend on where an entry stands. It takes the number of its
// namespace, its kind, and its place (an index, a sequence number, or 0).
func Seed(number uint32, kind byte, place uint64) uint64 {
	return uint64(number)<<32 ^ uint64(kind)<<56 ^ place*0x9e3779b97f4a7c15
}

// AppendSeal seals what stands in b from start on. A seal is the seeded XXH3 hash of
// what stands before it. It finds an entry that was damaged, and one that stands where
// another belongs. It does not defend against an adversary that can write to the store.
func AppendSeal(b []byte, start int, seed uint64) []byte {
	return binary.BigEndian.AppendUint64(b, xxh3.HashSeed(b[start:], seed))
}

// Unseal returns what a seal covers, or ErrCorrupt.
func Unseal(b []byte, seed uint64, what string) ([]byte, error) {
	if len(b) < SealSize {
		return nil, damage.Corrupt(what, "it has %d bytes", len(b))
	}
	body, sum := b[:len(b)-SealSize], b[len(b)-SealSize:]
	if xxh3.HashSeed(body, seed) != binary.BigEndian.Uint64(sum) {
		return nil, damage.Corrupt(what, "its checksum does not match")
	}
	return body, nil
}
