// Package saved has what the saved forms of the structures under bfield/ share. Each begins
// with a magic and a version, goes on with little-endian numbers, and ends with the XXH3 of
// all that is before:
//
//	b := saved.Append([]byte(format.Magic), seed, keys)
//	return saved.Sealed(saved.Append(b, words...))
//
//	in := format.Read(data)
//	seed, keys := in.Word(), in.Word()
//	words := in.Words(keys)
//	return in.End()
//
// The checksum finds damage, not malice. So what is read is checked as if an adversary had
// written it. No bytes make a Reader panic, or allocate more than they are long.
package saved

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"
)

// Format is a saved form.
type Format struct {
	Magic string // what it begins with; the version is its end
	Err   error  // of bytes that are no such form
}

// Errorf is Err with what is wrong.
func (f Format) Errorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", f.Err, fmt.Sprintf(format, args...))
}

// SumSize is the length of the checksum.
const SumSize = 8

// Append appends words to a saved form.
func Append(b []byte, words ...uint64) []byte {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// Sealed is a saved form with its checksum.
func Sealed(b []byte) []byte { return Append(b, xxh3.Hash(b)) }

// Reader reads a saved form. After an error it yields zeros.
type Reader struct {
	format Format
	rest   []byte
	err    error
}

// Read reads what is between the magic and the checksum.
func (f Format) Read(data []byte) *Reader {
	r := &Reader{format: f}
	end := len(data) - SumSize
	switch {
	case end < len(f.Magic):
		r.Refuse("%d bytes are too few", len(data))
	case string(data[:len(f.Magic)]) != f.Magic:
		r.Refuse("it begins with %q, not with %q", data[:len(f.Magic)], f.Magic)
	case xxh3.Hash(data[:end]) != binary.LittleEndian.Uint64(data[end:]):
		r.Refuse("its checksum does not fit")
	default:
		r.rest = data[len(f.Magic):end]
	}
	return r
}

// Refuse notes what is wrong, if nothing was before.
func (r *Reader) Refuse(format string, args ...any) {
	if r.err == nil {
		r.err = r.format.Errorf(format, args...)
	}
	r.rest = nil
}

// Errorf is Refuse, and returns the first error.
func (r *Reader) Errorf(format string, args ...any) error {
	r.Refuse(format, args...)
	return r.err
}

// Err is the first error.
func (r *Reader) Err() error { return r.err }

// Left is how many bytes are left.
func (r *Reader) Left() uint64 { return uint64(len(r.rest)) }

// Bytes are the next n bytes, or nil after an error.
func (r *Reader) Bytes(n uint64) []byte {
	if n > r.Left() {
		r.Refuse("it is cut short")
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Byte is the next byte.
func (r *Reader) Byte() byte { return byte(r.number(1)) }

// Uint16 is the next number of two bytes.
func (r *Reader) Uint16() uint16 { return uint16(r.number(2)) }

// Uint32 is the next number of four bytes.
func (r *Reader) Uint32() uint32 { return uint32(r.number(4)) }

// Word is the next number of eight bytes.
func (r *Reader) Word() uint64 { return r.number(8) }

func (r *Reader) number(size uint64) uint64 {
	var b [8]byte
	copy(b[:], r.Bytes(size))
	return binary.LittleEndian.Uint64(b[:])
}

// Words are the next n words, or nil after an error.
func (r *Reader) Words(n uint64) []uint64 {
	if n > r.Left()/8 {
		r.Refuse("it is cut short")
		return nil
	}
	words := make([]uint64, n)
	for i, b := 0, r.Bytes(8*n); i < len(words); i++ {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return words
}

// Then reads on in other bytes, which have no checksum behind them.
func (r *Reader) Then(data []byte) {
	if r.err == nil {
		r.rest = data
	}
}

// End ensures that nothing is left. It returns the first error.
func (r *Reader) End() error {
	if len(r.rest) > 0 {
		r.Refuse("%d bytes too many", len(r.rest))
	}
	return r.err
}

// Unmarshal makes t what parse makes of data; after an error it is as it was.
func Unmarshal[T any](t *T, data []byte, parse func([]byte) (*T, error)) error {
	read, err := parse(data)
	if err == nil {
		*t = *read
	}
	return err
}
