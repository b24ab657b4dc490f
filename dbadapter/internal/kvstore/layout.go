package kvstore

import (
	"encoding/binary"
	"math"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// Layout of the keys in the database. A namespace is numbered when it is first
// opened, from 1, and a number is never used twice; number 0 is the store's
// own. All integers are big-endian, so that keys sort as numbers do.
//
//	number(4) 'r' key       record: envelope, see envelope.go
//	number(4) 't' key       tail:   the rest of an envelope that is too long for one entry
//	number(4) 'i' index(6)  bucket: checksum(6) { length(uvarint) key }…  seal(8)
//	number(4) 'l' seq(8)    log:    see layout.AppendLogEntry
//	number(4) 'k' why seq(8) kept:  see kept.go
//	number(4) 'u' why seq(8) tail of a kept entry
//	number(4) 'c'           summary: which one is kept, see summary.go
//	number(4) 'g' generation(8) part(4)  a part of a summary
//	number(4) 'm'           meta:   see layout.Meta.Encode, and keepAhead for its own number
//
//	0(4) 'n' id(16)         name:   number(4)  seal(8)
//	0(4) 'd' number(4)      a namespace being dropped: empty
//	0(4) 'b' line(16)       line:   commits(8) token(16)  seal(8), see checkpoint.go
//	0(4) 'm'                meta:   commits(8) next number(4)  seal(8)
//	0(4) 'f'                filler: any bytes; see autocompact.go
//
// A log entry stands under the sequence number of its last change, so that seeking a
// number finds the entry with it. A seal is that of dbadapter/internal/layout.
const (
	kindRecord = 'r'
	kindTail   = 't'
	kindMore   = 'u'
	kindKeeps  = 'c'
	kindPart   = 'g'
	kindName   = 'n'
	kindDrop   = 'd'
	kindLine   = 'b'
	kindFiller = 'f'
)

const (
	// prefixSize is the length of a namespace's number and the kind byte.
	prefixSize = 5
	maxIndex   = 1<<(8*layout.NumberSize) - 1
	// maxNumber keeps the keys clear of those that Badger reserves for itself,
	// which begin with "!".
	maxNumber = '!'<<24 - 1
)

func appendPrefix(b []byte, number uint32, kind byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, number), kind)
}

func appendIndexKey(b []byte, number uint32, index dbadapter.Index) []byte {
	return layout.Append48(appendPrefix(b, number, layout.KindIndex), uint64(index))
}

func appendLogKey(b []byte, number uint32, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(b, number, layout.KindLog), seq)
}

// metaKey is where the head of a namespace stands, or the store's own.
func metaKey(number uint32) []byte { return appendPrefix(nil, number, layout.KindMeta) }

func tailKey(number uint32, key []byte) []byte {
	return append(appendPrefix(nil, number, kindTail), key...)
}

// appendBucket encodes a bucket of records.
func appendBucket(b []byte, number uint32, index dbadapter.Index, sum dbadapter.Checksum, held []commit.Held) []byte {
	start := len(b)
	b = layout.Append48(b, uint64(sum))
	for i := range held {
		b = layout.AppendPiece(b, held[i].Record.Key)
	}
	return layout.AppendSeal(b, start, layout.Seed(number, layout.KindIndex, uint64(index)))
}

// bucket is a decoded index entry. Its keys refer to the entry.
type bucket struct {
	sum  dbadapter.Checksum
	rest []byte
}

func readBucket(b []byte, number uint32, index dbadapter.Index) (bucket, error) {
	body, err := layout.Unseal(b, layout.Seed(number, layout.KindIndex, uint64(index)), "an index entry")
	if err != nil {
		return bucket{}, err
	}
	if len(body) < layout.NumberSize {
		return bucket{}, damage.Corrupt("an index entry", "it has no checksum")
	}
	return bucket{dbadapter.Checksum(layout.Read48(body)), body[layout.NumberSize:]}, nil
}

// next takes the next key off the bucket; ok is false at its end.
func (b *bucket) next() (key []byte, ok bool, err error) {
	if len(b.rest) == 0 {
		return nil, false, nil
	}
	key, b.rest, err = layout.TakePiece(b.rest, "an index entry")
	return key, err == nil, err
}

// eachKey calls do with the keys of an index entry, and returns its checksum.
func eachKey(entry []byte, number uint32, index dbadapter.Index, do func(key []byte) error) (dbadapter.Checksum, error) {
	b, err := readBucket(entry, number, index)
	for err == nil {
		var key []byte
		var more bool
		if key, more, err = b.next(); !more || err != nil {
			break
		}
		err = do(key)
	}
	return b.sum, err
}

// keptLast is the last entry of the kept log whose commit is there: those ahead of it
// may give way to others of the same numbers.
func keptLast(m *layout.Meta) uint64 {
	if m.Own != 0 {
		return m.Own - 1
	}
	return m.Kept.Seq
}

// head is what the store knows of itself.
type head struct {
	commits uint64 // how many transactions were ever committed
	next    uint32 // the number that the next new namespace gets
}

func (h *head) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, h.commits)
	b = binary.BigEndian.AppendUint32(b, h.next)
	return layout.AppendSeal(b, 0, layout.Seed(0, layout.KindMeta, 0))
}

func (h *head) decode(b []byte) error {
	const what = "the head of the store"
	body, err := layout.Unseal(b, layout.Seed(0, layout.KindMeta, 0), what)
	if err != nil {
		return err
	}
	if len(body) != 12 {
		return damage.Corrupt(what, "it has %d bytes", len(body))
	}
	*h = head{binary.BigEndian.Uint64(body), binary.BigEndian.Uint32(body[8:])}
	return nil
}

// nameKey is where the number of a namespace stands.
func nameKey(id dbadapter.NamespaceID) []byte {
	return append(appendPrefix(nil, 0, kindName), id[:]...)
}

func encodeName(id dbadapter.NamespaceID, number uint32) []byte {
	return layout.AppendSeal(binary.BigEndian.AppendUint32(nil, number), 0, nameSeed(id))
}

func decodeName(id dbadapter.NamespaceID, b []byte) (uint32, error) {
	body, err := layout.Unseal(b, nameSeed(id), "the name of a namespace")
	if err != nil {
		return 0, err
	}
	if len(body) != 4 {
		return 0, damage.Corrupt("the name of a namespace", "it has %d bytes", len(body))
	}
	return binary.BigEndian.Uint32(body), nil
}

func nameSeed(id dbadapter.NamespaceID) uint64 {
	return layout.Seed(0, kindName, binary.BigEndian.Uint64(id[:])^binary.BigEndian.Uint64(id[8:])*math.MaxUint32)
}
