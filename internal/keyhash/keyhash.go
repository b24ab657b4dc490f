// Package keyhash is the ground floor: the prime field that pairs live in, the
// vocabulary of places, checksums and digests, and the keyed hash that makes
// them from bytes.
//
// Everything that places or checks an item is keyed with a namespace's secret:
// who does not know the secret can neither aim two keys at one cell nor make
// two contents agree. The hash is HighwayHash (Alakuijala, Cox, Wassenberg
// 2016), a keyed pseudo-random function; it is not collision resistant against
// somebody who holds the key, which is why signatures hash with SHA-512
// instead.
package keyhash

// Size is the length of a namespace secret in bytes.
const Size = 32

// Secret is the 32-byte key of a namespace.
type Secret [Size]byte

// Index is a key's place: a number in [1, P−1]; 0 stands for none.
type Index uint64

// Checksum stands for the version and content of the records under one index:
// a number in [1, P−1]; 0 stands for no record at all.
type Checksum uint64

// Digest is a 256-bit hash of one record, or a sum of such hashes modulo
// 2^256, least significant word first. The zero value is the digest of the
// empty set.
type Digest [4]uint64

// Pair is one entry of the set that is reconciled: an index, and the checksum
// of the records that it holds.
type Pair struct {
	Index    Index
	Checksum Checksum
}
