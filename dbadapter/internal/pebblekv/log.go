package pebblekv

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// A log of Pebble's is a row of blocks of 32 KiB, and a block a row of chunks that
// ends with zeros where no further one fits. A record is one chunk, or a first one,
// some middle ones and a last one (pebble/v2@v2.1.7, record/record.go):
//
//	list of tables              crc(4) length(2) kind(1)                     bytes
//	commits, of a new database  crc(4) length(2) kind(1) number(4)           bytes
//	commits                     crc(4) length(2) kind(1) number(4) synced(8) bytes
//
// Integers are little-endian; the crc covers what follows the length. A log of commits
// that was closed ends with a trailer, and behind its end may stand zeros, or what an
// older log has left there, of another number.
//
// A record is written only after the one before it is on the disk. So where something
// stands that is no chunk, and a record begins behind it, it was not torn but
// damaged. A last record that is damaged cannot be told from a torn one, nor a log
// that was cut behind a record.
type form struct {
	commits bool
	number  uint32 // of a log of commits, its low 32 bits
}

const (
	block      = 32 << 10
	listHeader = 7
	// A header with the log's number, and one that also says what is synced.
	numberHeader = 11
	syncedHeader = 19
	// numberAt is where a header has the number.
	numberAt = 7
	// Kinds of a chunk: it is a whole record, the first chunk of one, a middle one (3),
	// the last. Each kind of header has four of its own.
	kindWhole = 1
	kindFirst = 2
	kindLast  = 4
	kinds     = 4
)

// header is the size of a header by the kind in it, and that kind without what says
// so; 0 if a log of this form has no such kind.
func (f form) header(kind byte) (size int, of byte) {
	of = (kind-1)%kinds + 1
	switch {
	case kind == 0 || f.commits == (kind <= kinds):
		return 0, 0
	case kind <= kinds:
		return listHeader, of
	case kind <= 2*kinds:
		return numberHeader, of
	case kind <= 3*kinds:
		return syncedHeader, of
	}
	return 0, 0
}

// chunk reads the chunk at an offset; ok is false if there is no chunk.
func (f form) chunk(b []byte, at int) (end int, begins, ok bool) {
	if at+listHeader > len(b) {
		return 0, false, false
	}
	size, kind := f.header(b[at+6])
	end = at + size + int(binary.LittleEndian.Uint16(b[at+4:]))
	if size == 0 || end > len(b) || end > (at/block+1)*block ||
		f.commits && binary.LittleEndian.Uint32(b[at+numberAt:]) != f.number {
		return 0, false, false
	}
	sum := crc32.Checksum(b[at+6:end], castagnoli)
	return end, kind == kindWhole || kind == kindFirst, binary.LittleEndian.Uint32(b[at:]) == masked(sum)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// closed reports whether a log of commits was closed at an offset.
func (f form) closed(b []byte, at int) bool {
	want := make([]byte, numberHeader) // of no length, and without a checksum
	want[6] = kinds + kindWhole
	binary.LittleEndian.PutUint32(want[numberAt:], f.number+1)
	return bytes.HasPrefix(b[at:], want)
}

// end is where the chunks end that follow one another from the beginning, and
// whether nothing is wrong there.
func (f form) end(b []byte) (at int, clean bool) {
	for at < len(b) {
		if left := block - at%block; left < syncedHeader && len(bytes.Trim(b[at:min(at+left, len(b))], "\x00")) == 0 {
			at = min(at+left, len(b))
			continue
		}
		next, _, ok := f.chunk(b, at)
		if !ok {
			break
		}
		at = next
	}
	if f.commits {
		return at, f.closed(b, at)
	}
	return at, at == len(b)
}

// probeLog reads a log. orderly: it was closed.
func probeLog(path string, f form, orderly bool) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return named(err)
	}
	at, clean := f.end(b)
	if clean {
		return nil
	}
	if orderly {
		return damage.File(path, "it ends at %d in the midst of a record, though the store was closed in order", at)
	}
	for later := at; later < len(b); later++ {
		if _, begins, ok := f.chunk(b, later); ok && begins {
			return damage.File(path, "a record at %d is damaged, and others follow it", at)
		}
	}
	return nil
}
