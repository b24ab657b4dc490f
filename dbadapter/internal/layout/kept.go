package layout

import (
	"encoding/binary"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// An entry of the kept log begins, behind what a store puts before it, with
//
//	ms(8) by(24) length(uvarint) key
//
// The record follows, in the store's own form, and a seal of KeptSeed.
const (
	keptEntry = "an entry of the kept log"
	keptHead  = 8 + dbadapter.VersionSize
)

// KeptSeed is the seed of an entry of the kept log.
func KeptSeed(number uint32, why dbadapter.Why, seq uint64) uint64 {
	return Seed(number, KindKept, seq<<8|uint64(why))
}

// AppendKept appends the beginning of an entry of the kept log.
func AppendKept(b []byte, at time.Time, by dbadapter.Version, key []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(at.UnixMilli()))
	b, _ = by.AppendBinary(b) // never fails
	return AppendPiece(b, key)
}

// ReadKept reads a sealed entry of the kept log behind the bytes that a store puts before it,
// and returns the key and the record in the store's form.
func ReadKept(b []byte, before int, number uint32, why dbadapter.Why, seq uint64) (k dbadapter.Kept, key, record []byte, err error) {
	body, err := Unseal(b, KeptSeed(number, why, seq), keptEntry)
	if err != nil {
		return k, nil, nil, err
	}
	if len(body) < before+keptHead {
		return k, nil, nil, damage.Corrupt(keptEntry, "it has %d bytes", len(b))
	}
	body = body[before:]
	k.Seq, k.Why, k.At = seq, why, time.UnixMilli(int64(binary.BigEndian.Uint64(body))).UTC()
	if err := k.By.UnmarshalBinary(body[8:keptHead]); err != nil {
		return k, nil, nil, damage.Corrupt(keptEntry, "%v", err)
	}
	key, record, err = TakePiece(body[keptHead:], keptEntry)
	return k, key, record, err
}

// AppendPiece appends some bytes, with their length before them.
func AppendPiece(b, piece []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(piece))), piece...)
}

// TakePiece takes what AppendPiece has appended off the bytes of an entry.
func TakePiece(b []byte, what string) (piece, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, damage.Corrupt(what, "a piece goes past its end")
	}
	end := w + int(n)
	return b[w:end:end], b[end:], nil
}

// Check compares what is found in the kept log with what the commits have added up to.
func (k *Kept) Check(found Kept) error {
	if found.Seq = k.Seq; found == *k {
		return nil
	}
	return damage.Corrupt("the kept log", "it has %d conflicts and %d records set aside, and %d and %d were written",
		found.Conflicts, found.SetAside, k.Conflicts, k.SetAside)
}
