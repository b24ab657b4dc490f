package pgdb

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
)

// A seal is the XXH3 hash of what stands before it, seeded with the namespace's
// number, the kind and the place (seq, or 0): it finds an entry that was damaged, and
// one that stands where another belongs. It does not defend against an adversary
// that can write to the database.
const (
	kindLog     = 'l'
	kindKept    = 'k'
	kindMeta    = 'm'
	kindSummary = 's'
	kindIndex   = 'i'
)

const (
	sealSize   = 8
	numberSize = 6 // indices and checksums are below 2^48
)

func append48(b []byte, n uint64) []byte {
	return append(b, byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func read48(b []byte) uint64 {
	_ = b[5]
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}

// seed makes the seal depend on where an entry stands.
func seed(number int32, kind byte, place uint64) uint64 {
	return uint64(number)<<32 ^ uint64(kind)<<56 ^ place*0x9e3779b97f4a7c15
}

// appendSeal seals what stands in b from start on.
func appendSeal(b []byte, start int, seed uint64) []byte {
	return binary.BigEndian.AppendUint64(b, xxh3.HashSeed(b[start:], seed))
}

// unseal returns what a seal covers, or ErrCorrupt.
func unseal(b []byte, seed uint64, what string) ([]byte, error) {
	if len(b) < sealSize {
		return nil, corrupt(what, "it has %d bytes", len(b))
	}
	body, sum := b[:len(b)-sealSize], b[len(b)-sealSize:]
	if xxh3.HashSeed(body, seed) != binary.BigEndian.Uint64(sum) {
		return nil, corrupt(what, "its checksum does not match")
	}
	return body, nil
}

// A bucket's checksum is stored below the 16 lowest bits of its own seal.
const sumBits = 8 * numberSize

func sealSum(number int32, index dbadapter.Index, sum dbadapter.Checksum) int64 {
	var b [numberSize]byte
	seal := xxh3.HashSeed(append48(b[:0], uint64(sum)), seed(number, kindIndex, uint64(index)))
	return int64(seal<<sumBits | uint64(sum))
}

func unsealSum(number int32, index dbadapter.Index, stored int64) (dbadapter.Checksum, error) {
	sum := dbadapter.Checksum(uint64(stored) & (1<<sumBits - 1))
	if sealSum(number, index, sum) != stored {
		return 0, corrupt(fmt.Sprintf("the checksum of index %d", index), "it is not the one that was written")
	}
	return sum, nil
}

// keptMeta is what a namespace's head says of its kept log.
type keptMeta struct {
	seq       uint64 // of the last entry
	setAside  uint64 // entries of each kind
	conflicts uint64
	bytes     uint64 // keys and values of the conflicts
}

// count moves the count of a kind by an entry of a size, up or down.
func (m *keptMeta) count(why dbadapter.Why, size, by int) {
	if why == dbadapter.KeptConflict {
		m.conflicts += uint64(by)
		m.bytes += uint64(by * size)
	} else {
		m.setAside += uint64(by)
	}
}

// meta is what a namespace knows of itself; it is written with each commit.
type meta struct {
	seq     uint64 // of the last change
	first   uint64 // of the oldest change in the log; seq+1 if it is empty
	records uint64 // tombstones included
	latest  dbadapter.Timestamp
	raised  dbadapter.Timestamp // the last clock given to Raise that was above ceiling
	kept    keptMeta
	// summary is 0 if no summary is kept, else its sequence number and 1.
	summary uint64
	digest  dbadapter.Digest // the sum of the records' digests
}

const metaSize = 10*8 + dbadapter.DigestSize

// ceiling is what a restarted clock goes on from.
func (m *meta) ceiling() dbadapter.Timestamp { return max(m.latest, m.raised) }

func (m *meta) encode(number int32) []byte {
	b := make([]byte, 0, metaSize+sealSize)
	for _, n := range [...]uint64{
		m.seq, m.first, m.records, uint64(m.latest), uint64(m.raised),
		m.kept.seq, m.kept.setAside, m.kept.conflicts, m.kept.bytes, m.summary,
	} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = m.digest.AppendBinary(b)
	return appendSeal(b, 0, seed(number, kindMeta, 0))
}

func (m *meta) decode(b []byte, number int32) error {
	const what = "the head of a namespace"
	body, err := unseal(b, seed(number, kindMeta, 0), what)
	if err != nil {
		return err
	}
	if len(body) != metaSize {
		return corrupt(what, "it has %d bytes", len(body))
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(body[8*i:]) }
	*m = meta{
		at(0), at(1), at(2), dbadapter.Timestamp(at(3)), dbadapter.Timestamp(at(4)),
		keptMeta{at(5), at(6), at(7), at(8)},
		at(9),
		dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(body[10*8:])),
	}
	return nil
}

// corrupt names what is damaged and what to do about it.
func corrupt(what, format string, args ...any) error {
	return fmt.Errorf("read %s: %w: %s; restore the database from a copy, or use an empty schema and sync again from a peer",
		what, dbadapter.ErrCorrupt, fmt.Sprintf(format, args...))
}

// quote shows a key in an error: at most 64 bytes of it.
func quote(key []byte) string {
	const most = 64
	if len(key) <= most {
		return strconv.Quote(string(key))
	}
	return strconv.Quote(string(key[:most])) + "…"
}
