package kvstore

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Layout of the keys in the database. A namespace is numbered when it is first
// opened, from 1, and a number is never used twice; number 0 is the store's
// own. All integers are big-endian, so that keys sort as numbers do.
//
//	number(4) 'r' key       record: envelope, see envelope.go
//	number(4) 't' key       tail:   the rest of an envelope that is too long for one entry
//	number(4) 'i' index(6)  bucket: checksum(6) { length(uvarint) key }…  seal(8)
//	number(4) 'l' seq(8)    log:    see changes.go
//	number(4) 'k' why seq(8) kept:  see kept.go
//	number(4) 'u' why seq(8) tail of a kept entry
//	number(4) 'c'           summary: which one is kept, see summary.go
//	number(4) 'g' generation(8) part(4)  a part of a summary
//	number(4) 'm'           meta:   seq(8) first(8) records(8) latest(8) raised(8) kept(8×5) digest(32) seal(8)
//
//	0(4) 'n' id(16)         name:   number(4)  seal(8)
//	0(4) 'd' number(4)      a namespace being dropped: empty
//	0(4) 'b' line(16)       line:   commits(8) token(16)  seal(8), see checkpoint.go
//	0(4) 'm'                meta:   commits(8) next number(4)  seal(8)
//	0(4) 'f'                filler: any bytes; see compact.go
//
// A log entry holds the changes of one commit, or a part of them, under the
// sequence number of its last one, so that seeking a number finds the entry
// with it. first is the oldest change still in the log.
//
// A seal is the XXH3 hash of what stands before it, seeded with the number and
// the place (index, seq, or 0): it finds an entry that was damaged, and one
// that stands where another belongs. It does not defend against an adversary
// that can write to the folder.
const (
	kindRecord = 'r'
	kindTail   = 't'
	kindIndex  = 'i'
	kindLog    = 'l'
	kindKept   = 'k'
	kindMore   = 'u'
	kindKeeps  = 'c'
	kindPart   = 'g'
	kindMeta   = 'm'
	kindName   = 'n'
	kindDrop   = 'd'
	kindLine   = 'b'
	kindFiller = 'f'
)

const (
	// prefixSize is the length of a namespace's number and the kind byte.
	prefixSize = 5
	numberSize = 6 // indices and checksums are below 2^48
	sealSize   = 8
	maxIndex   = 1<<(8*numberSize) - 1
	// maxNumber keeps the keys clear of those that Badger reserves for itself,
	// which begin with "!".
	maxNumber = '!'<<24 - 1
)

func appendPrefix(b []byte, number uint32, kind byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, number), kind)
}

func append48(b []byte, n uint64) []byte {
	return append(b, byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func read48(b []byte) uint64 {
	_ = b[5]
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}

func appendIndexKey(b []byte, number uint32, index dbadapter.Index) []byte {
	return append48(appendPrefix(b, number, kindIndex), uint64(index))
}

func appendLogKey(b []byte, number uint32, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(b, number, kindLog), seq)
}

// metaKey is where the head of a namespace stands, or the store's own.
func metaKey(number uint32) []byte { return appendPrefix(nil, number, kindMeta) }

func tailKey(number uint32, key []byte) []byte {
	return append(appendPrefix(nil, number, kindTail), key...)
}

// seed makes the seal depend on where an entry stands.
func seed(number uint32, kind byte, place uint64) uint64 {
	return uint64(number)<<32 ^ uint64(kind)<<56 ^ place*0x9e3779b97f4a7c15
}

// appendSeal seals what stands in b from start on.
func appendSeal(b []byte, start int, seed uint64) []byte {
	return binary.BigEndian.AppendUint64(b, xxh3.HashSeed(b[start:], seed))
}

// unseal returns what a seal covers, or ErrCorrupt.
func unseal(b []byte, seed uint64, what string) ([]byte, error) {
	if len(b) < sealSize {
		return nil, kv.Corrupt(what, "it has %d bytes", len(b))
	}
	body, sum := b[:len(b)-sealSize], b[len(b)-sealSize:]
	if xxh3.HashSeed(body, seed) != binary.BigEndian.Uint64(sum) {
		return nil, kv.Corrupt(what, "its checksum does not match")
	}
	return body, nil
}

// appendBucket encodes a bucket of the given records' keys.
func appendBucket(b []byte, number uint32, index dbadapter.Index, sum dbadapter.Checksum, keys func(yield func([]byte) bool)) []byte {
	start := len(b)
	b = append48(b, uint64(sum))
	for key := range keys {
		b = binary.AppendUvarint(b, uint64(len(key)))
		b = append(b, key...)
	}
	return appendSeal(b, start, seed(number, kindIndex, uint64(index)))
}

// bucket is a decoded index entry. Its keys refer to the entry.
type bucket struct {
	sum  dbadapter.Checksum
	rest []byte
}

func readBucket(b []byte, number uint32, index dbadapter.Index) (bucket, error) {
	body, err := unseal(b, seed(number, kindIndex, uint64(index)), "an index entry")
	if err != nil {
		return bucket{}, err
	}
	if len(body) < numberSize {
		return bucket{}, kv.Corrupt("an index entry", "it has no checksum")
	}
	return bucket{dbadapter.Checksum(read48(body)), body[numberSize:]}, nil
}

// next takes the next key off the bucket; ok is false at its end.
func (b *bucket) next() (key []byte, ok bool, err error) {
	if len(b.rest) == 0 {
		return nil, false, nil
	}
	n, w := binary.Uvarint(b.rest)
	if w <= 0 || n > uint64(len(b.rest)-w) {
		return nil, false, kv.Corrupt("an index entry", "a key goes past its end")
	}
	key, b.rest = b.rest[w:w+int(n)], b.rest[w+int(n):]
	return key, true, nil
}

// meta is what a namespace knows of itself; it is written with each commit.
type meta struct {
	seq     uint64 // of the last change
	first   uint64 // of the oldest change in the log; seq+1 if it is empty
	records uint64 // tombstones included
	latest  dbadapter.Timestamp
	raised  dbadapter.Timestamp // the last clock given to Raise that was above ceiling
	kept    keptMeta
	digest  dbadapter.Digest // the sum of the records' digests
}

const metaSize = 10*8 + dbadapter.DigestSize

// ceiling is what a restarted clock goes on from.
func (m *meta) ceiling() dbadapter.Timestamp { return max(m.latest, m.raised) }

func (m *meta) encode(number uint32) []byte {
	b := make([]byte, 0, metaSize+sealSize)
	for _, n := range [...]uint64{m.seq, m.first, m.records, uint64(m.latest), uint64(m.raised), m.kept.seq, m.kept.setAside, m.kept.conflicts, m.kept.bytes, m.kept.ahead} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = m.digest.AppendBinary(b)
	return appendSeal(b, 0, seed(number, kindMeta, 0))
}

func (m *meta) decode(b []byte, number uint32) error {
	const what = "the head of a namespace"
	body, err := unseal(b, seed(number, kindMeta, 0), what)
	if err != nil {
		return err
	}
	if len(body) != metaSize {
		return kv.Corrupt(what, "it has %d bytes", len(body))
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(body[8*i:]) }
	*m = meta{
		at(0), at(1), at(2), dbadapter.Timestamp(at(3)), dbadapter.Timestamp(at(4)),
		keptMeta{at(5), at(6), at(7), at(8), at(9)},
		dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(body[10*8:])),
	}
	return nil
}

// head is what the store knows of itself.
type head struct {
	commits uint64 // how many transactions were ever committed
	next    uint32 // the number that the next new namespace gets
}

func (h *head) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, h.commits)
	b = binary.BigEndian.AppendUint32(b, h.next)
	return appendSeal(b, 0, seed(0, kindMeta, 0))
}

func (h *head) decode(b []byte) error {
	const what = "the head of the store"
	body, err := unseal(b, seed(0, kindMeta, 0), what)
	if err != nil {
		return err
	}
	if len(body) != 12 {
		return kv.Corrupt(what, "it has %d bytes", len(body))
	}
	*h = head{binary.BigEndian.Uint64(body), binary.BigEndian.Uint32(body[8:])}
	return nil
}

// nameKey is where the number of a namespace stands.
func nameKey(id dbadapter.NamespaceID) []byte {
	return append(appendPrefix(nil, 0, kindName), id[:]...)
}

func encodeName(id dbadapter.NamespaceID, number uint32) []byte {
	return appendSeal(binary.BigEndian.AppendUint32(nil, number), 0, nameSeed(id))
}

func decodeName(id dbadapter.NamespaceID, b []byte) (uint32, error) {
	body, err := unseal(b, nameSeed(id), "the name of a namespace")
	if err != nil {
		return 0, err
	}
	if len(body) != 4 {
		return 0, kv.Corrupt("the name of a namespace", "it has %d bytes", len(body))
	}
	return binary.BigEndian.Uint32(body), nil
}

func nameSeed(id dbadapter.NamespaceID) uint64 {
	return seed(0, kindName, binary.BigEndian.Uint64(id[:])^binary.BigEndian.Uint64(id[8:])*math.MaxUint32)
}
