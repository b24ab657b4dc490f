package kvstore

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// An envelope is the stored form of a record:
//
//	flags(1) version(24) seal(8) [[signer(8)] signature(64)] [optional fields] value
//
// A signature names its signer where the version has no writer. The optional
// fields have the form that dbadapter gives them, and its flags.
//
// The seal is the first word of the record's keyed digest, which covers all of it
// but the signature, XORed with the XXH3 hash of the signature
// if there is one, since digests do not cover signatures. It is recomputed on
// every read; the digest that comes of it is what the caller wants anyway.
//
// An envelope that is too long to stand among the keys is cut in two, so that
// nothing ever goes to Badger's value log, which is written apart from them.
const (
	flagDeleted = 1 << iota
	flagSigned
	flagLong // the rest is in the tail

	flagsOptional = dbadapter.FlagExpires | dbadapter.FlagReplaces
)

// cut is where a long envelope is cut: both halves fit.
const cut = inline / 2

// isLong reports whether a record's envelope is cut in two.
func isLong(r *dbadapter.Record) bool {
	return envelopeSize+signatureSize(r)+r.OptionalSize()+len(r.Value) >= inline
}

// signatureSize is what the signature takes, with the signer.
func signatureSize(r *dbadapter.Record) int {
	if len(r.Signature) > 0 && r.Version.Writer == 0 {
		return signerSize + len(r.Signature)
	}
	return len(r.Signature)
}

const signerSize = 8

const envelopeSize = 1 + dbadapter.VersionSize + sealSize

func appendEnvelope(b []byte, r *dbadapter.Hashed) []byte {
	flags := r.OptionalFlags()
	sum := r.Digest[0]
	if r.Deleted {
		flags |= flagDeleted
	}
	if len(r.Signature) > 0 {
		flags |= flagSigned
	}
	if isLong(&r.Record) {
		flags |= flagLong
	}
	b, _ = r.Version.AppendBinary(append(b, flags))
	seal := len(b)
	b = append(b, make([]byte, sealSize)...)
	if len(r.Signature) > 0 && r.Version.Writer == 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(r.Signer))
	}
	b = append(b, r.Signature...)
	if flags&flagSigned != 0 {
		sum ^= xxh3.Hash(b[seal+sealSize:])
	}
	binary.BigEndian.PutUint64(b[seal:], sum)
	return append(r.AppendOptional(b), r.Value...)
}

// readEnvelope decodes and verifies a record. Key, signature and value refer to
// the slices given.
func readEnvelope(b, key []byte, h dbadapter.Hasher) (dbadapter.Hashed, error) {
	bad := func(format string, args ...any) (dbadapter.Hashed, error) {
		return dbadapter.Hashed{}, kv.Corrupt("the record "+kv.Quote(key), format, args...)
	}
	if len(b) < envelopeSize {
		return bad("it has %d bytes", len(b))
	}
	flags := b[0]
	if flags&^(flagDeleted|flagSigned|flagLong|flagsOptional) != 0 {
		return bad("it has unknown flags %#x", flags)
	}
	r := dbadapter.Record{Key: key, Deleted: flags&flagDeleted != 0}
	if err := r.Version.UnmarshalBinary(b[1 : 1+dbadapter.VersionSize]); err != nil {
		return bad("%v", err)
	}
	sum := binary.BigEndian.Uint64(b[1+dbadapter.VersionSize:])
	rest := b[envelopeSize:]
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
		r.Value = rest
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
