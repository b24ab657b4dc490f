package badgerkv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4/fb"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// A block is
//
//	{ overlap(2) rest(2) rest of the key  meta(1) 0 expiry(uvarint) value }…  { offset(4) }…  entries(4)  checksum  length(4)
//
// where a key begins with as many bytes of the block's first key as overlap says, and
// ends with the time; overlap and rest have the byte order of the machine, which is
// little-endian wherever Badger runs.
type tableSource struct {
	v    *salvager
	file *os.File
	name string
	// index says where the blocks are, and how each begins.
	index *fb.TableIndex
	block int // the next one
	rest  []version
}

// table takes up a table.
func (v *salvager) table(dir string, id uint64) (err error) {
	path := tableFile(dir, id)
	name := filepath.Base(path)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		v.gap(nil, nil, "the file %s is missing", name)
		return nil
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	index, err := soundIndex(f, path, info.Size())
	if err != nil {
		if !errors.Is(err, dbadapter.ErrCorrupt) {
			return errors.Join(err, f.Close())
		}
		v.gap(nil, nil, "the index of the file %s", name)
		return f.Close()
	}
	return v.add(&tableSource{v: v, file: f, name: name, index: index})
}

// soundIndex reads the index of a table, and makes an error of all that is wrong with
// it.
func soundIndex(f *os.File, path string, size int64) (index *fb.TableIndex, err error) {
	defer damage.Recovered(path, &err)
	index, end, err := readTableIndex(f, path, size)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = damage.File(path, "its end: %v", err)
	}
	if err != nil {
		return nil, err
	}
	for i := range index.OffsetsLength() {
		var at fb.BlockOffset
		if !index.Offsets(&at, i) || int64(at.Offset())+int64(at.Len()) > end || len(at.KeyBytes()) < 8 {
			return nil, damage.File(path, "block %d is not where it should be", i)
		}
	}
	return index, nil
}

func (t *tableSource) close() { _ = t.file.Close() } // it was read only

func (t *tableSource) next() (*version, error) {
	for len(t.rest) == 0 {
		if t.block == t.index.OffsetsLength() {
			return nil, nil
		}
		if err := t.read(); err != nil {
			return nil, err
		}
		t.block++
	}
	first := t.rest[0]
	t.rest = t.rest[1:]
	return &first, nil
}

// read reads the next block, or what is sound of it.
func (t *tableSource) read() error {
	var at fb.BlockOffset
	t.index.Offsets(&at, t.block)
	b := make([]byte, at.Len())
	_, failed := t.file.ReadAt(b, int64(at.Offset()))
	var path *os.PathError
	if failed != nil && !errors.As(failed, &path) && !errors.Is(failed, io.EOF) {
		return failed
	}
	if failed == nil && checkBlock(b) == nil {
		if entries, ok := parseBlock(b, nil); ok {
			t.rest = entries
			return nil
		}
	}
	var end []byte
	if t.block+1 < t.index.OffsetsLength() {
		var behind fb.BlockOffset
		t.index.Offsets(&behind, t.block+1)
		key, _ := splitTime(bytes.Clone(behind.KeyBytes()))
		end = kv.After(key) // an older version of it may begin the next block
	}
	t.lenient(b, at.KeyBytes(), end, int(at.Offset()))
	return nil
}

// lenient takes the entries of a damaged block whose own checksums hold. What follows
// the first key in the index is not later than the table.
func (t *tableSource) lenient(b, base, end []byte, offset int) {
	first, _ := splitTime(bytes.Clone(base))
	entries, ok := parseBlock(b, base)
	from, open := first, true
	for i := range entries {
		e := &entries[i]
		if e.key == nil || e.deleted || e.time > t.index.MaxVersion() || !t.v.sound(e.key, e.value) ||
			bytes.Compare(e.key, first) < 0 || end != nil && bytes.Compare(e.key, end) >= 0 {
			open = true
			continue
		}
		if n := len(t.rest); n > 0 && bytes.Compare(e.key, t.rest[n-1].key) < 0 {
			open = true
			continue
		}
		if open {
			t.v.gap(from, kv.After(e.key), "the file %s at %d", t.name, offset)
		}
		t.rest = append(t.rest, *e)
		from, open = kv.After(e.key), false
	}
	if open || !ok {
		t.v.gap(from, end, "the file %s at %d", t.name, offset)
	}
}

// parseBlock reads the entries of a block, which keeps b. first is the first key in the
// index, if the block is damaged: entries that cannot be read have no key then, and ok
// is false if there may be more of them.
func parseBlock(b, first []byte) (entries []version, ok bool) {
	at := len(b) - 4
	if at < 0 {
		return nil, false
	}
	if n := binary.BigEndian.Uint32(b[at:]); uint64(n)+4 <= uint64(at) {
		at -= int(n) + 4
	} else {
		return nil, false
	}
	n := binary.BigEndian.Uint32(b[at:])
	if n == 0 || uint64(n) > uint64(at/4) {
		return nil, false
	}
	offsets := b[at-4*int(n) : at]
	data := b[:at-4*int(n)]
	if binary.LittleEndian.Uint32(offsets) != 0 {
		return nil, false
	}
	entries = make([]version, n)
	base := first
	for i := range entries {
		from, to := uint64(binary.LittleEndian.Uint32(offsets[4*i:])), uint64(len(data))
		if i+1 < len(entries) {
			to = uint64(binary.LittleEndian.Uint32(offsets[4*(i+1):]))
		}
		if to > uint64(len(data)) || from > to {
			continue
		}
		key, value, ok := parseEntry(data[from:to:to], base)
		if !ok {
			continue
		}
		if i == 0 && base == nil {
			base = key
		}
		_, w := binary.Uvarint(value[2:])
		if w <= 0 {
			continue
		}
		user, time := splitTime(key)
		entries[i] = version{user, time, value[0]&deletedMark != 0, value[2+w:]}
	}
	return entries, true
}

// parseEntry reads an entry: its key with the time, and what follows it.
func parseEntry(e, base []byte) (key, value []byte, ok bool) {
	if len(e) < 4 {
		return nil, nil, false
	}
	overlap, rest := int(binary.LittleEndian.Uint16(e)), int(binary.LittleEndian.Uint16(e[2:]))
	if overlap > len(base) || rest > len(e)-4 || overlap+rest < 8 || len(e)-4-rest < 2 {
		return nil, nil, false
	}
	key = append(append(make([]byte, 0, overlap+rest), base[:overlap]...), e[4:4+rest]...)
	return key, e[4+rest:], true
}

// deletedMark is Badger's mark of a key that was removed.
const deletedMark = 1

// splitTime takes the time off a key of Badger's.
func splitTime(key []byte) (user []byte, time uint64) {
	at := len(key) - 8
	return key[:at:at], math.MaxUint64 - binary.BigEndian.Uint64(key[at:])
}
