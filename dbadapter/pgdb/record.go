package pgdb

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
)

// The head of a record is all of it but key and value:
//
//	flags(1) version(24) seal(8) [[signer(8)] signature(64)] [optional fields]
//
// A signature names its signer where the version has no writer. The optional
// fields have the form that dbadapter gives them, and its flags.
//
// The seal is the first word of the record's keyed digest, which covers all of it
// but the signature, XORed with the XXH3 hash of the signature if there is one. It
// is recomputed on every read; the digest that comes of it is what the caller wants
// anyway.
const (
	flagDeleted = 1 << iota
	flagSigned

	flagsOptional = dbadapter.FlagExpires | dbadapter.FlagReplaces
)

const (
	signerSize    = 8
	leastHeadSize = 1 + dbadapter.VersionSize + sealSize
)

// headSize is the length of a record's head.
func headSize(r *dbadapter.Record) int { return leastHeadSize + signatureSize(r) + r.OptionalSize() }

// signatureSize is what the signature takes, with the signer.
func signatureSize(r *dbadapter.Record) int {
	if len(r.Signature) > 0 && r.Version.Writer == 0 {
		return signerSize + len(r.Signature)
	}
	return len(r.Signature)
}

func appendHead(b []byte, r *dbadapter.Hashed) []byte {
	flags := r.OptionalFlags()
	sum := r.Digest[0]
	if r.Deleted {
		flags |= flagDeleted
	}
	if len(r.Signature) > 0 {
		flags |= flagSigned
	}
	b, _ = r.Version.AppendBinary(append(b, flags)) // never fails
	seal := len(b)
	b = append(b, make([]byte, sealSize)...)
	if len(r.Signature) > 0 {
		if r.Version.Writer == 0 {
			b = binary.BigEndian.AppendUint64(b, uint64(r.Signer))
		}
		b = append(b, r.Signature...)
		sum ^= xxh3.Hash(b[seal+sealSize:])
	}
	binary.BigEndian.PutUint64(b[seal:], sum)
	return r.AppendOptional(b)
}

// readRecord decodes and verifies a record. It refers to the slices given.
func readRecord(key, head, value []byte, h dbadapter.Hasher) (dbadapter.Hashed, error) {
	bad := func(format string, args ...any) (dbadapter.Hashed, error) {
		return dbadapter.Hashed{}, corrupt("the record "+quote(key), format, args...)
	}
	if len(head) < leastHeadSize {
		return bad("its head has %d bytes", len(head))
	}
	flags := head[0]
	if flags&^(flagDeleted|flagSigned|flagsOptional) != 0 {
		return bad("it has unknown flags %#x", flags)
	}
	r := dbadapter.Record{Key: key, Deleted: flags&flagDeleted != 0}
	if err := r.Version.UnmarshalBinary(head[1 : 1+dbadapter.VersionSize]); err != nil {
		return bad("%v", err)
	}
	sum := binary.BigEndian.Uint64(head[1+dbadapter.VersionSize:])
	rest := head[leastHeadSize:]
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
		sum ^= xxh3.Hash(signature)
		if r.Version.Writer == 0 {
			r.Signer = dbadapter.WriterID(binary.BigEndian.Uint64(signature))
			signature = signature[signerSize:]
		}
		r.Signature = signature
	}
	rest, err := r.ReadOptional(flags, rest)
	if err != nil {
		return bad("%v", err)
	}
	if len(rest) > 0 {
		return bad("something stands behind its head")
	}
	if len(value) > 0 {
		r.Value = value
	}
	hashed, err := dbadapter.Hash(h, r)
	if err != nil {
		return bad("%v", err)
	}
	if hashed.Digest[0] != sum {
		return bad("its checksum does not match")
	}
	return hashed, nil
}
