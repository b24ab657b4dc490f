package locator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// ErrCopy is returned for bytes that are no copy of a set, and no block of its entries.
var ErrCopy = errors.New("locator: no copy of a set")

// copyMagic begins a copy, as a file; its last byte is the version. Numbers are big-endian.
//
//	8 bytes  magic
//	4        shards
//	2        set
//	8, 8     log of the host that said it, and the number of the change as of which
//	1        length of the host's id, and the id
//	         blocks of entries, until the last one
//	8        XXH3 of all that is before
const copyMagic = "LOCCOPY\x01"

const copyPrefix = "locator-"

func copyName(set placement.Shard) string { return fmt.Sprintf(copyPrefix+"%04x", set) }

// IsCopy reports whether a name is that of a copy on the disk: hosts tell anew what it holds.
func IsCopy(name string) bool { return strings.HasPrefix(name, copyPrefix) }

// appendCopy appends the file of a copy: entries that ascend by index, each once, none Gone.
func appendCopy(b []byte, shards int, set placement.Shard, at Place, entries []Entry) ([]byte, error) {
	begin := len(b)
	b = binary.BigEndian.AppendUint32(append(b, copyMagic...), uint32(shards))
	b = binary.BigEndian.AppendUint16(b, uint16(set))
	for _, x := range []uint64{at.Log, at.Seq} {
		b = binary.BigEndian.AppendUint64(b, x)
	}
	b = append(append(b, byte(len(at.Host))), at.Host...)
	cursor := keyset.Cursor{}
	for last := false; !last; {
		n := min(len(entries), keyset.MaxKeys)
		last = n == len(entries)
		var err error
		if b, err = appendEntries(b, cursor, entries[:n], last, shards); err != nil {
			return nil, err
		}
		if n > 0 {
			cursor = keyset.Cursor{Begun: true, After: uint64(entries[n-1].Index())}
		}
		entries = entries[n:]
	}
	return binary.BigEndian.AppendUint64(b, xxh3.Hash(b[begin:])), nil
}

// parseCopy reads the file of a copy, and gives each block of its entries to each; it verifies
// the whole before the first one.
func parseCopy(data []byte, shards int, set placement.Shard, each func([]Entry)) (at Place, err error) {
	const head = len(copyMagic) + 4 + 2 + 16 + 1
	refuse := func(format string, args ...any) (Place, error) {
		return Place{}, fmt.Errorf("%w: %s", ErrCopy, fmt.Sprintf(format, args...))
	}
	if len(data) < head+8 || string(data[:len(copyMagic)]) != copyMagic {
		return refuse("it does not begin like one")
	}
	rest := data[:len(data)-8]
	if xxh3.Hash(rest) != binary.BigEndian.Uint64(data[len(rest):]) {
		return refuse("its checksum does not fit")
	}
	field := rest[len(copyMagic):]
	if n, s := binary.BigEndian.Uint32(field), binary.BigEndian.Uint16(field[4:]); n != uint32(shards) || s != uint16(set) {
		return refuse("it is of set %d of %d", s, n)
	}
	word := func(i int) uint64 { return binary.BigEndian.Uint64(field[6+8*i:]) }
	at = Place{Log: word(0), Seq: word(1)}
	end := head + int(rest[head-1])
	if end > len(rest) {
		return refuse("it ends in a host's id")
	}
	at.Host, rest = roster.ID(rest[head:end]), rest[end:]
	cursor := keyset.Cursor{}
	for !cursor.Done {
		var entries []Entry
		var from keyset.Cursor
		was := cursor
		if entries, from, cursor, rest, err = parseEntries(rest, shards); err != nil {
			return Place{}, err
		}
		if from != was {
			return refuse("a block follows another one than that before it")
		}
		each(entries)
	}
	if len(rest) > 0 {
		return refuse("%d bytes are left over", len(rest))
	}
	return at, nil
}

// appendEntries appends a block of entries, those of a set behind a place, keyset.MaxKeys at
// most: whether some are Shared; keyset's block of the indices; and what is said of each, in as
// many bits as a shard takes, one more if some are Shared.
func appendEntries(b []byte, at keyset.Cursor, entries []Entry, last bool, shards int) ([]byte, error) {
	indices, wide := make([]uint64, len(entries)), byte(0)
	for i, e := range entries {
		indices[i] = uint64(e.Index())
		switch c := e.Code(); {
		case c == Shared:
			wide = 1
		case int(c) >= shards:
			return nil, fmt.Errorf("%w: shard %d of %d", ErrCopy, c, shards)
		}
	}
	b, err := keyset.Append(append(b, wide), at, indices, last)
	if err != nil {
		return nil, err
	}
	width := blockWidth(shards, wide)
	word, used := uint64(0), uint(0)
	for _, e := range entries {
		value := uint64(e.Code())
		if e.Code() == Shared {
			value = uint64(shards)
		}
		word |= value << used
		for used += width; used >= 8; used -= 8 {
			b, word = append(b, byte(word)), word>>8
		}
	}
	if used > 0 {
		b = append(b, byte(word))
	}
	return b, nil
}

func blockWidth(shards int, wide byte) uint { return uint(bits.Len(uint(shards-1))) + uint(wide) }

// parseEntries reads a block that appendEntries has written: the place that it follows, the
// one behind it, and the bytes that are left over.
func parseEntries(data []byte, shards int) (entries []Entry, from, next keyset.Cursor, rest []byte, err error) {
	refuse := func(format string, args ...any) ([]Entry, keyset.Cursor, keyset.Cursor, []byte, error) {
		return nil, from, next, nil, fmt.Errorf("%w: %s", ErrCopy, fmt.Sprintf(format, args...))
	}
	if len(data) == 0 || data[0] > 1 {
		return refuse("a block of entries that does not begin like one")
	}
	wide, block := data[0], data[1:]
	length, err := keyset.Length(block)
	if err != nil || length > len(block) {
		return refuse("a block of %d bytes ends early (%v)", len(block), err)
	}
	block, rest = block[:length], block[length:]
	from = keyset.Place(block)
	indices, next, err := keyset.Decode(nil, from, block)
	if err != nil {
		return refuse("%v", err)
	}
	if len(indices) > 0 && indices[len(indices)-1] >= keyhash.P {
		return refuse("an index outside the field")
	}
	width := blockWidth(shards, wide)
	codes := (len(indices)*int(width) + 7) / 8
	if codes > len(rest) {
		return refuse("it ends in what is said of %d indices", len(indices))
	}
	packed, rest := rest[:codes], rest[codes:]
	entries = make([]Entry, len(indices))
	word, have, shared := uint64(0), uint(0), byte(0)
	for i, index := range indices {
		for ; have < width; have += 8 {
			word |= uint64(packed[0]) << have
			packed = packed[1:]
		}
		c := Code(word & (1<<width - 1))
		word, have = word>>width, have-width
		switch {
		case int(c) == shards && wide == 1:
			c, shared = Shared, 1
		case int(c) >= shards:
			return refuse("shard %d of %d", c, shards)
		}
		entries[i] = Entry(index)<<codeBits | Entry(c)
	}
	if word != 0 || shared != wide {
		return refuse("bits are left over")
	}
	return entries, from, next, rest, nil
}
