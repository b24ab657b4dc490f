package dbadapter

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
)

// Record is one key with its value and version. A tombstone has Deleted set
// and no value. Signature is empty, or an Ed25519 signature: the writer's, or
// that of Signer where the version has no writer (a dated import).
type Record struct {
	Key       []byte
	Value     []byte
	Version   Version
	Deleted   bool
	Signature []byte
	Signer    WriterID // 0 but for a signed record without a writer
	// Expires, if not 0, is the time from which on the record reads as absent,
	// in whole milliseconds. A tombstone never expires.
	Expires Timestamp
	// Replaces names, for each writer, the latest version of the key that the record
	// was built on. It has at most MaxReplaces, by writer, each older than Version. A
	// dated import names no version. See Supersedes.
	Replaces []Replaced
}

// Validate reports, as an ErrLimit, what makes the record unfit to be stored.
func (r *Record) Validate() error {
	switch {
	case len(r.Key) == 0:
		return fmt.Errorf("%w: the key is empty; a key has 1 to %d bytes", ErrLimit, MaxKey)
	case len(r.Key) > MaxKey:
		return fmt.Errorf("%w: the key has %d bytes; a key has 1 to %d bytes", ErrLimit, len(r.Key), MaxKey)
	case len(r.Value) > MaxValue:
		return fmt.Errorf("%w: the value has %d bytes; a value has at most %d bytes", ErrLimit, len(r.Value), MaxValue)
	case r.Deleted && len(r.Value) > 0:
		return fmt.Errorf("%w: a tombstone carries no value", ErrLimit)
	case len(r.Signature) != 0 && len(r.Signature) != SignatureSize:
		return fmt.Errorf("%w: the signature has %d bytes, not %d", ErrLimit, len(r.Signature), SignatureSize)
	case r.Signer != 0 && (len(r.Signature) == 0 || r.Version.Writer != 0):
		return fmt.Errorf("%w: a record names its signer only if it is signed and its version has no writer", ErrLimit)
	}
	return r.validOptional()
}

// ContentHash is the SHA-256 of the tombstone flag and the value. It breaks
// the tie between two contents of one version, and lets a long value be
// offered before it is sent. It is not keyed: every node computes the same.
func (r *Record) ContentHash() [32]byte {
	h := sha256.New()
	if r.Deleted {
		h.Write([]byte{1})
	} else {
		h.Write([]byte{0})
	}
	h.Write(r.Value)
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// Compare orders two records of one key, by version. Equal versions (a dated import of
// differing data) go by content hash, then by expiry, then by the bytes of what they
// replace. So every node picks the same winner. It returns −1, 0 or +1; the greater
// record wins, and 0 means that they differ in nothing but the signature.
func (r *Record) Compare(o *Record) int {
	if c := r.Version.Compare(o.Version); c != 0 {
		return c
	}
	if r.Deleted != o.Deleted || !bytes.Equal(r.Value, o.Value) {
		a, b := r.ContentHash(), o.ContentHash()
		return bytes.Compare(a[:], b[:])
	}
	return r.CompareOptional(o)
}

// CompareOptional is the last part of Compare, for two records of one version
// and content.
func (r *Record) CompareOptional(o *Record) int {
	return cmp.Or(
		cmp.Compare(r.Expires, o.Expires),
		bytes.Compare(appendReplaces(nil, r.Replaces), appendReplaces(nil, o.Replaces)),
	)
}

// SameContent reports whether both records say the same for the same time,
// whatever their versions.
func (r *Record) SameContent(o *Record) bool {
	return r.Deleted == o.Deleted && r.Expires == o.Expires && bytes.Equal(r.Value, o.Value)
}

// Due is when the record may be collected: once all members are past its version
// and its expiry. ok is false for one that stays.
func (r *Record) Due() (at Timestamp, ok bool) {
	return max(r.Version.Clock, r.Expires), r.Deleted || r.Expires != 0
}

// Weight is what the record counts for in a batch, in bytes. A store keeps the key
// with the record, in its bucket and in the change log.
func (r *Record) Weight() int { return 2*len(r.Key) + len(r.Value) }

// Clone returns a record that shares no memory with r.
func (r *Record) Clone() Record {
	c := *r
	c.Key = bytes.Clone(r.Key)
	c.Value = bytes.Clone(r.Value)
	c.Signature = bytes.Clone(r.Signature)
	c.Replaces = slices.Clone(r.Replaces)
	return c
}
