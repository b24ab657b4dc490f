package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/multiformats/go-varint"
)

// ErrFrame: the bytes are not a message. The other side speaks another
// protocol, or means harm.
var ErrFrame = errors.New("malformed message")

// Append appends the message as one frame.
func Append(b []byte, m Message) []byte {
	// The length comes first, so the body is written behind the room that
	// the longest length takes, and moved up.
	const room = 4 // MaxFrame < 2^28
	start := len(b)
	b = append(b, make([]byte, room)...)
	b = append(b, byte(m.Kind()))
	b = written(b, m.fields)
	size := uint64(len(b) - start - room)
	n := varint.PutUvarint(b[start:start+room], size)
	copy(b[start+n:], b[start+room:])
	return b[:len(b)-room+n]
}

// Reader is what Read needs: a byte at a time for the length, and the rest.
type Reader interface {
	io.Reader
	io.ByteReader
}

// Read reads one frame and parses it. It returns the message and the number of bytes
// read. An end of input between two frames is io.EOF; inside one it is
// io.ErrUnexpectedEOF.
func Read(r Reader) (Message, int, error) {
	size, err := varint.ReadUvarint(r)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, 0, err
		}
		if errors.Is(err, varint.ErrOverflow) || errors.Is(err, varint.ErrNotMinimal) || errors.Is(err, varint.ErrUnderflow) {
			return nil, 0, fmt.Errorf("%w: length: %w", ErrFrame, err)
		}
		return nil, 0, err
	}
	if size == 0 || size > MaxFrame {
		return nil, 0, fmt.Errorf("%w: a frame of %d bytes; 1 to %d are allowed", ErrFrame, size, MaxFrame)
	}
	var frame []byte
	for left := int(size); left > 0; {
		step := min(left, max(readStep, len(frame))) // no more than has come already
		at := len(frame)
		frame = append(frame, make([]byte, step)...)
		if _, err := io.ReadFull(r, frame[at:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, varint.UvarintSize(size) + at, err
		}
		left -= step
	}
	m, err := Parse(frame)
	return m, varint.UvarintSize(size) + len(frame), err
}

// Parse parses a frame without its length. The message aliases the frame.
func Parse(frame []byte) (Message, error) {
	if len(frame) == 0 {
		return nil, fmt.Errorf("%w: an empty frame", ErrFrame)
	}
	if n := int(frame[0]); n >= len(kinds) || kinds[n] == nil {
		return nil, fmt.Errorf("%w: kind %d: unknown kind", ErrFrame, n)
	}
	m := kinds[frame[0]]()
	if err := readAll(frame[1:], m.fields); err != nil {
		return nil, fmt.Errorf("%w: kind %d: %w", ErrFrame, frame[0], err)
	}
	return m, nil
}
