package layout

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// The head of a record is all of it but key and value:
//
//	flags(1) version(24) seal(8) [[signer(8)] signature(64)] [optional fields]
//
// A signature names its signer where the version has no writer. The optional fields
// have the form that dbadapter gives them, and its flags.
//
// The seal is the first word of the record's keyed digest, which covers all of it but
// the signature. If there is a signature, its XXH3 hash is XORed in. It is recomputed
// on every read; the digest that comes of it is what the caller wants anyway.
const (
	flagDeleted = 1 << iota
	flagSigned
	// FlagOwn means what the store says.
	FlagOwn

	flagsAll = flagDeleted | flagSigned | dbadapter.FlagExpires | dbadapter.FlagReplaces
)

const (
	signerSize = 8
	// LeastHead is the length of a head without what is optional.
	LeastHead = 1 + dbadapter.VersionSize + SealSize
)

// HeadSize is the length of a record's head.
func HeadSize(r *dbadapter.Record) int { return LeastHead + signatureSize(r) + r.OptionalSize() }

// signatureSize is what the signature takes, with the signer.
func signatureSize(r *dbadapter.Record) int {
	if len(r.Signature) > 0 && r.Version.Writer == 0 {
		return signerSize + len(r.Signature)
	}
	return len(r.Signature)
}

// AppendHead appends the head of a record, with flags of the store's own.
func AppendHead(b []byte, r *dbadapter.Hashed, own byte) []byte {
	flags := r.OptionalFlags() | own
	sum := r.Digest[0]
	if r.Deleted {
		flags |= flagDeleted
	}
	if len(r.Signature) > 0 {
		flags |= flagSigned
	}
	b, _ = r.Version.AppendBinary(append(b, flags)) // never fails
	seal := len(b)
	b = append(b, make([]byte, SealSize)...)
	if len(r.Signature) > 0 {
		if r.Version.Writer == 0 {
			b = binary.BigEndian.AppendUint64(b, uint64(r.Signer))
		}
		b = append(b, r.Signature...)
		sum ^= xxh3.Hash(b[seal+SealSize:])
	}
	binary.BigEndian.PutUint64(b[seal:], sum)
	return r.AppendOptional(b)
}

// Head is the decoded head of a record, and its key.
type Head struct {
	record dbadapter.Record
	seal   uint64 // without the signature's part
}

// ReadHead decodes the head of the record under a key, and returns what stands behind
// it. own are the flags that the store may have set. The slices are referred to.
func ReadHead(b, key []byte, own byte) (h Head, rest []byte, err error) {
	bad := func(format string, args ...any) (Head, []byte, error) {
		return Head{}, nil, corruptRecord(key, format, args...)
	}
	if len(b) < LeastHead {
		return bad("it has %d bytes", len(b))
	}
	flags := b[0]
	if flags&^(flagsAll|own) != 0 {
		return bad("it has unknown flags %#x", flags)
	}
	r := &h.record
	r.Key, r.Deleted = key, flags&flagDeleted != 0
	if err := r.Version.UnmarshalBinary(b[1 : 1+dbadapter.VersionSize]); err != nil {
		return bad("%v", err)
	}
	h.seal = binary.BigEndian.Uint64(b[1+dbadapter.VersionSize:])
	rest = b[LeastHead:]
	if flags&flagSigned != 0 {
		size := dbadapter.SignatureSize
		if r.Version.Writer == 0 {
			size += signerSize
		}
		if len(rest) < size {
			return bad("its signature is cut short")
		}
		signature := rest[:size:size]
		rest = rest[size:]
		h.seal ^= xxh3.Hash(signature)
		if r.Version.Writer == 0 {
			r.Signer = dbadapter.WriterID(binary.BigEndian.Uint64(signature))
			signature = signature[signerSize:]
		}
		r.Signature = signature
	}
	if rest, err = r.ReadOptional(flags, rest); err != nil {
		return bad("%v", err)
	}
	return h, rest, nil
}

// Record verifies the record of the head with a value, which it refers to.
func (h *Head) Record(value []byte, hasher dbadapter.Hasher) (dbadapter.Hashed, error) {
	if len(value) > 0 {
		h.record.Value = value
	}
	hashed, err := dbadapter.Hash(hasher, h.record)
	if err != nil {
		return dbadapter.Hashed{}, corruptRecord(h.record.Key, "%v", err)
	}
	if hashed.Digest[0] != h.seal {
		return dbadapter.Hashed{}, corruptRecord(h.record.Key, "its checksum does not match")
	}
	return hashed, nil
}

func corruptRecord(key []byte, format string, args ...any) error {
	return damage.Corrupt("the record "+damage.Quote(key), format, args...)
}
