package kvstore

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// A copy of a store is a stream of entries as they stand in the database, their seals
// included. All integers are big-endian, lengths are uvarints.
//
//	copy    = "syncd store copy, disk format N\n" section* end
//	section = 'n' id(16) number(4) since(8) frame*
//	frame   = '+' length key length value      an entry
//	        | '=' length key                   an entry that is as it was
//	        | '-' length key                   a bucket that is empty now
//	end     = '.' commits(8) next number(4) frames(8)
//
// Keys stand without the namespace's number. With since 0 a section holds all
// entries of the namespace but its change log. Else it holds
//
//   - each bucket with a change after since, and all its records: it takes the
//     place of that bucket and of whatever records that one names,
//   - of the other kinds of entries, '+' those written since and '=' the others:
//     what is not named is gone,
//
// and so carries what was deleted, though nothing of it is left in the database.
const (
	frameNamespace = 'n'
	framePut       = '+'
	frameSame      = '='
	frameEmpty     = '-'
	frameEnd       = '.'
)

func copyMagic() string { return "syncd store copy, disk format " + strconv.Itoa(Format) + "\n" }

type copyWriter struct {
	w      *bufio.Writer
	frames uint64
	err    error // the first; it ends all writing
	head   []byte
}

func newCopyWriter(w io.Writer) *copyWriter {
	c := &copyWriter{w: bufio.NewWriterSize(w, 256<<10)}
	_, c.err = c.w.WriteString(copyMagic())
	return c
}

func (c *copyWriter) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
	}
}

func (c *copyWriter) section(n *namespace, since uint64) error {
	b := append(append(c.head[:0], frameNamespace), n.ID[:]...)
	b = binary.BigEndian.AppendUint32(b, n.Number)
	c.head = binary.BigEndian.AppendUint64(b, since)
	c.write(c.head)
	return c.err
}

// frame writes an entry; key is without the number.
func (c *copyWriter) frame(kind byte, key, value []byte) error {
	c.frames++
	c.head = binary.AppendUvarint(append(c.head[:0], kind), uint64(len(key)))
	c.write(c.head)
	c.write(key)
	if kind == framePut {
		c.head = binary.AppendUvarint(c.head[:0], uint64(len(value)))
		c.write(c.head)
		c.write(value)
	}
	return c.err
}

func (c *copyWriter) end(h head) error {
	b := binary.BigEndian.AppendUint64([]byte{frameEnd}, h.commits)
	b = binary.BigEndian.AppendUint32(b, h.next)
	c.write(binary.BigEndian.AppendUint64(b, c.frames))
	if c.err == nil {
		c.err = c.w.Flush()
	}
	return c.err
}

// copyFrame is what a reader finds next. Its slices are the caller's.
type copyFrame struct {
	kind       byte
	key, value []byte
	// Of a section.
	id     dbadapter.NamespaceID
	number uint32
	since  uint64
	// Of the end.
	head head
}

type copyReader struct {
	r      *bufio.Reader
	frames uint64
}

// CheckCopy looks at how a copy begins. ErrFormat: this program cannot restore it.
func CheckCopy(r io.Reader) error {
	_, err := newCopyReader(r)
	return err
}

// newCopyReader checks the first line. ErrFormat: the copy is of a store of
// another disk format.
func newCopyReader(r io.Reader) (*copyReader, error) {
	c := &copyReader{r: bufio.NewReaderSize(r, 256<<10)}
	line := make([]byte, len(copyMagic()))
	n, err := io.ReadFull(c.r, line)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if string(line[:n]) != copyMagic() {
		return nil, fmt.Errorf("%w: the copy begins with %q; this program reads copies of disk format %d: restore it with the program that made it, export the records, and import them with this one",
			dbadapter.ErrFormat, line[:n], Format)
	}
	return c, nil
}

// Bounds of an entry: what an engine takes, and what the store writes.
const (
	maxCopyKey   = prefixSize + dbadapter.MaxKey + 64
	maxCopyValue = 2 * inline
)

func (c *copyReader) next() (f copyFrame, err error) {
	defer func() {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = damage.Corrupt("the copy", "it is cut short")
		}
	}()
	if f.kind, err = c.r.ReadByte(); err != nil {
		return f, err
	}
	switch f.kind {
	case frameNamespace:
		b, err := c.bytes(16 + 4 + 8)
		if err != nil {
			return f, err
		}
		f.id, f.number, f.since = dbadapter.NamespaceID(b), binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint64(b[20:])
		if f.number == 0 || f.number > maxNumber {
			return f, damage.Corrupt("the copy", "a namespace has the number %d", f.number)
		}
		return f, nil
	case framePut, frameSame, frameEmpty:
		c.frames++
		if f.key, err = c.sized(maxCopyKey, "key"); err == nil && f.kind == framePut {
			f.value, err = c.sized(maxCopyValue, "value")
		}
		if err == nil && len(f.key) == 0 {
			err = damage.Corrupt("the copy", "an entry has no key")
		}
		return f, err
	case frameEnd:
		b, err := c.bytes(8 + 4 + 8)
		if err != nil {
			return f, err
		}
		f.head = head{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}
		if frames := binary.BigEndian.Uint64(b[12:]); frames != c.frames {
			return f, damage.Corrupt("the copy", "it has %d entries, and says %d", c.frames, frames)
		}
		if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
			return f, damage.Corrupt("the copy", "something stands behind its end")
		}
		return f, nil
	}
	return f, damage.Corrupt("the copy", "there is no frame of kind %#x", f.kind)
}

func (c *copyReader) sized(most uint64, what string) ([]byte, error) {
	n, err := binary.ReadUvarint(c.r)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, damage.Corrupt("the copy", "a %s has %d bytes", what, n)
	}
	return c.bytes(int(n))
}

func (c *copyReader) bytes(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(c.r, b)
	return b, err
}
