package locator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"
	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// ErrCopy is returned for bytes that are no copy of a set, and no block of its entries.
var ErrCopy = errors.New("locator: no copy of a set")

// copyMagic begins a copy, as a file; its last byte is the version.
//
//	8 bytes  magic
//	         copyHead, as CBOR
//	         blocks of entries, until the last one
//	8        XXH3 of all that is before, big-endian
const copyMagic = "LOCCOPY\x02"

type copyHead struct {
	_        struct{} `cbor:",toarray"`
	Shards   int
	Set      placement.Shard
	Host     []byte // no UTF-8
	Log, Seq uint64
}

const copyPrefix = "locator-"

func copyName(set placement.Shard) string { return fmt.Sprintf(copyPrefix+"%04x", set) }

// IsCopy reports whether a name is that of a copy on the disk: hosts tell anew what it holds.
func IsCopy(name string) bool { return strings.HasPrefix(name, copyPrefix) }

// appendCopy appends the file of a copy: entries that ascend by index, each once, none Gone.
func appendCopy(b []byte, shards int, set placement.Shard, at Place, entries []Entry) ([]byte, error) {
	begin := len(b)
	head, err := cbor.Marshal(copyHead{Shards: shards, Set: set, Host: []byte(at.Host), Log: at.Log, Seq: at.Seq})
	if err != nil {
		return nil, err
	}
	b = append(append(b, copyMagic...), head...)
	cursor := keyset.Cursor{}
	for last := false; !last; {
		n := min(len(entries), keyset.MaxKeys)
		last = n == len(entries)
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
	refuse := func(format string, args ...any) (Place, error) {
		return Place{}, fmt.Errorf("%w: %s", ErrCopy, fmt.Sprintf(format, args...))
	}
	if len(data) < len(copyMagic)+8 || string(data[:len(copyMagic)]) != copyMagic {
		return refuse("it does not begin like one")
	}
	rest := data[:len(data)-8]
	if xxh3.Hash(rest) != binary.BigEndian.Uint64(data[len(rest):]) {
		return refuse("its checksum does not fit")
	}
	var head copyHead
	begin := rest[len(copyMagic):]
	if rest, err = cbor.UnmarshalFirst(begin, &head); err != nil {
		return refuse("its head: %v", err)
	}
	again, err := cbor.Marshal(head)
	if err != nil || head.Shards != shards || head.Set != set || !bytes.HasPrefix(begin, again) {
		return refuse("it is of set %d of %d", head.Set, head.Shards)
	}
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
	return Place{Host: roster.ID(head.Host), Log: head.Log, Seq: head.Seq}, nil
}

// The forms of a block of entries: all say the same; some are Shared, or none is.
const (
	narrow = iota
	wide
	alike
)

func formOf(entries []Entry) byte {
	switch {
	case len(entries) > 0 && !slices.ContainsFunc(entries, func(e Entry) bool { return e.Code() != entries[0].Code() }):
		return alike
	case slices.ContainsFunc(entries, func(e Entry) bool { return e.Code() == Shared }):
		return wide
	}
	return narrow
}

// bitsOf is how many bits a block has for what is said of each index.
func bitsOf(form byte, shards int) uint {
	if form == alike {
		return 0
	}
	return uint(bits.Len(uint(shards-1))) + uint(form)
}

// appendEntries appends a block of entries, those of a set behind a place, keyset.MaxKeys at
// most: its form; what is said of all, if they are alike; keyset's block of the indices; and what is
// said of each, in as many bits as a shard takes, one more if some are Shared.
func appendEntries(b []byte, at keyset.Cursor, entries []Entry, last bool, shards int) ([]byte, error) {
	indices, form := make([]uint64, len(entries)), formOf(entries)
	for i, e := range entries {
		indices[i] = uint64(e.Index())
		if c := e.Code(); c != Shared && int(c) >= shards {
			return nil, fmt.Errorf("%w: shard %d of %d", ErrCopy, c, shards)
		}
	}
	if b = append(b, form); form == alike {
		b = binary.BigEndian.AppendUint16(b, uint16(entries[0].Code()))
	}
	b, err := keyset.Append(b, at, indices, last)
	if err != nil || form == alike {
		return b, err
	}
	word, used, width := uint64(0), uint(0), bitsOf(form, shards)
	for _, e := range entries {
		word |= min(uint64(e.Code()), uint64(shards)) << used // shards stands for Shared
		for used += width; used >= 8; used -= 8 {
			b, word = append(b, byte(word)), word>>8
		}
	}
	if used > 0 {
		b = append(b, byte(word))
	}
	return b, nil
}

// parseEntries reads a block that appendEntries has written: the place that it follows, the
// one behind it, and the bytes that are left over.
func parseEntries(data []byte, shards int) (entries []Entry, from, next keyset.Cursor, rest []byte, err error) {
	refuse := func(format string, args ...any) ([]Entry, keyset.Cursor, keyset.Cursor, []byte, error) {
		return nil, from, next, nil, fmt.Errorf("%w: %s", ErrCopy, fmt.Sprintf(format, args...))
	}
	if len(data) < 3 || data[0] > alike {
		return refuse("a block of entries that does not begin like one")
	}
	form, block, all := data[0], data[1:], Code(0)
	if form == alike {
		all, block = Code(binary.BigEndian.Uint16(block)), block[2:]
		if int(all) >= shards && all != Shared {
			return refuse("shard %d of %d", all, shards)
		}
	}
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
	width := bitsOf(form, shards)
	codes := (len(indices)*int(width) + 7) / 8
	if codes > len(rest) {
		return refuse("it ends in what is said of %d indices", len(indices))
	}
	packed, rest := rest[:codes], rest[codes:]
	entries = make([]Entry, len(indices))
	word, have := uint64(0), uint(0)
	for i, index := range indices {
		for ; have < width; have += 8 {
			word |= uint64(packed[0]) << have
			packed = packed[1:]
		}
		c := Code(word & (1<<width - 1))
		word, have = word>>width, have-width
		switch {
		case form == alike:
			c = all
		case int(c) == shards && form == wide:
			c = Shared
		case int(c) >= shards:
			return refuse("shard %d of %d", c, shards)
		}
		entries[i] = NewEntry(dbadapter.Index(index), c)
	}
	if word != 0 || formOf(entries) != form {
		return refuse("bits are left over, or it has another form than that of its content")
	}
	return entries, from, next, rest, nil
}
