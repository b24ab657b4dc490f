package dbadapter

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"
)

// Digest is a 256-bit hash of one record, or a sum of such hashes modulo
// 2^256, least significant word first. The zero value is the digest of the
// empty set.
type Digest [4]uint64

// Add returns d + e mod 2^256. Digests of sets add up as the sets do, in any
// order, so that a kept sum follows each write at constant cost.
func (d Digest) Add(e Digest) Digest {
	var carry uint64
	for i := range d {
		d[i], carry = bits.Add64(d[i], e[i], carry)
	}
	return d
}

// Sub returns d − e mod 2^256.
func (d Digest) Sub(e Digest) Digest {
	var borrow uint64
	for i := range d {
		d[i], borrow = bits.Sub64(d[i], e[i], borrow)
	}
	return d
}

// IsZero reports whether d is the digest of the empty set.
func (d Digest) IsZero() bool { return d == Digest{} }

// AppendBinary appends the 32-byte little-endian form.
func (d Digest) AppendBinary(b []byte) []byte {
	for _, w := range d {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// DigestFromBytes reads the 32-byte form.
func DigestFromBytes(b [DigestSize]byte) (d Digest) {
	for i := range d {
		d[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return d
}

// String is the number in hexadecimal, most significant digit first.
func (d Digest) String() string {
	b := d.AppendBinary(nil)
	slices.Reverse(b)
	return hex.EncodeToString(b)
}
