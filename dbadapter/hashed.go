package dbadapter

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"
)

// Hashed is a valid record with what its hashes told. A record that arrives is
// validated and hashed once, by Hash, and travels as a Hashed from there on. The index
// and the digest cover all of it but the signature, and must not be changed any more; a
// signature may still be added.
type Hashed struct {
	Record
	Index  Index
	Digest Digest
}

// Hash validates a record and hashes it under the secret of h. It fails with
// ErrLimit if the record is not fit to be stored. The Hashed shares the
// record's slices.
func Hash(h Hasher, r Record) (Hashed, error) {
	if err := r.Validate(); err != nil {
		return Hashed{}, err
	}
	return Hashed{Record: r, Index: h.Index(r.Key), Digest: digest(h, r)}, nil
}

// digest takes no memory with the hasher of NewHasher: the argument of a method of an
// interface always does.
func digest(h Hasher, r Record) Digest {
	if h, ok := h.(*hasher); ok {
		return h.Digest(&r)
	}
	other := r
	return h.Digest(&other)
}

// Clone returns a Hashed that shares no memory with r.
func (r *Hashed) Clone() Hashed {
	return Hashed{Record: r.Record.Clone(), Index: r.Index, Digest: r.Digest}
}

// Bucket gathers the records under one index and makes the pair that stands for
// them in a sketch. The zero Bucket is empty.
type Bucket struct {
	// Records counts the records, and Digest is the sum of their digests.
	Records int
	Digest  Digest

	index   Index
	latest  Timestamp
	digests []Digest
}

// Add adds a record. The records of a bucket are added in the order of their
// keys.
func (b *Bucket) Add(r *Hashed) {
	b.index, b.digests = r.Index, append(b.digests, r.Digest)
	b.Records++
	b.Digest = b.Digest.Add(r.Digest)
	b.latest = max(b.latest, r.Version.Clock)
}

// Pair is the index with the checksum of the records that were added; the zero
// Pair stands for an empty bucket.
func (b *Bucket) Pair(h Hasher) Pair {
	if b.Records == 0 {
		return Pair{}
	}
	return Pair{Index: b.index, Checksum: h.Checksum(b.index, b.latest, b.digests)}
}

// Reset empties the bucket, whose memory is used again for the next records.
func (b *Bucket) Reset() { *b = Bucket{digests: b.digests[:0]} }

// PairOf is the pair of a record that is alone in its bucket.
func PairOf(h Hasher, r *Hashed) Pair {
	var b Bucket
	b.Add(r)
	return b.Pair(h)
}

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
