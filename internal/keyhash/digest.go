package keyhash

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"
)

// DigestSize is the length of a digest's binary form.
const DigestSize = 32

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
func DigestFromBytes(b [DigestSize]byte) Digest { return fromBytes(b) }

// String is the number in hexadecimal, most significant digit first.
func (d Digest) String() string {
	b := d.AppendBinary(nil)
	slices.Reverse(b)
	return hex.EncodeToString(b)
}
