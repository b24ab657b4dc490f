package keyset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"
)

const (
	// MaxKeys is the most hashes of a block. With 64 bits each and a little more
	// it stays below 64 KiB. The 20 bytes around them are 0.04 bits a hash.
	MaxKeys = 4096

	// MaxBytes is the most bytes of a block. k is at most 63, and all quotients
	// together are fewer than two a hash, since 2^(k+1) is more than the mean gap.
	MaxBytes = headerSize + MaxKeys*(63+1+2)/8 + sumSize

	version    = 1
	headerSize = 16
	sumSize    = 4
	flagBegins = 64
	flagEnds   = 128
)

var (
	// ErrFormat means that bytes are no block.
	ErrFormat = errors.New("keyset: not a block of key hashes")
	// ErrPlace means that a block is not the next one: it follows another hash.
	ErrPlace = errors.New("keyset: a block of another place")
	// ErrKeys means that hashes are not ascending, or too many or too few for a
	// block.
	ErrKeys = errors.New("keyset: not the hashes of a block")
)

// Cursor is a place in a set: what is before it has been sent. The zero Cursor is
// the beginning.
type Cursor struct {
	Begun bool
	After uint64 // the last hash that was sent, if Begun
	Done  bool   // there are no more
}

// next is the first hash that may come; ok is false if no hash may.
func (c Cursor) next() (first uint64, ok bool) {
	if !c.Begun {
		return 0, true
	}
	return c.After + 1, c.After+1 != 0
}

// Append appends to dst the block of the set's hashes behind at. They are the
// next ones, ascending, up to MaxKeys of them. last says that the set has no
// more; only then may there be no hash.
func Append(dst []byte, at Cursor, hashes []uint64, last bool) ([]byte, error) {
	if len(hashes) > MaxKeys || len(hashes) == 0 && !last || at.Done {
		return dst, fmt.Errorf("%w: %d hashes, of 1 to %d", ErrKeys, len(hashes), MaxKeys)
	}
	first, ok := at.next()
	for i, h := range hashes {
		if !ok || h < first {
			return dst, fmt.Errorf("%w: hash %d, %x, is not above the one before", ErrKeys, i, h)
		}
		first, ok = h+1, h+1 != 0
	}
	k := parameter(at, hashes)
	flags := byte(k)
	if !at.Begun {
		flags |= flagBegins
	}
	if last {
		flags |= flagEnds
	}
	begin := len(dst)
	dst = append(dst, version, flags)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(hashes)))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, at.After)
	out := output{bytes: dst}
	first, _ = at.next()
	for _, h := range hashes {
		out.gap(h-first, k)
		first = h + 1
	}
	dst = out.end()
	binary.LittleEndian.PutUint32(dst[begin+4:], uint32(len(dst)-begin-headerSize))
	return binary.LittleEndian.AppendUint32(dst, uint32(xxh3.Hash(dst[begin:]))), nil
}

// parameter is k: 2^k ≤ mean gap < 2^(k+1), or 0. The mean of the gaps is that of
// what lies between at and the last hash.
func parameter(at Cursor, hashes []uint64) uint {
	if len(hashes) == 0 {
		return 0
	}
	first, _ := at.next()
	mean := (hashes[len(hashes)-1] - first) / uint64(len(hashes))
	return uint(max(bits.Len64(mean), 1) - 1)
}

// Length returns the length of the block that begins with these bytes, of which
// 8 are enough. It is at most MaxBytes; the error is ErrFormat.
func Length(data []byte) (int, error) {
	if len(data) < 8 || data[0] != version {
		return 0, fmt.Errorf("%w: it begins with % x", ErrFormat, data[:min(len(data), 8)])
	}
	gaps := binary.LittleEndian.Uint32(data[4:])
	if gaps > MaxBytes-headerSize-sumSize {
		return 0, fmt.Errorf("%w: gaps of %d bytes", ErrFormat, gaps)
	}
	return headerSize + int(gaps) + sumSize, nil
}

// Decode appends to dst the hashes of a block, and returns the place behind it.
// The block must be the one at the given place; otherwise, ErrPlace. After an
// error, dst and at are returned as they were.
func Decode(dst []uint64, at Cursor, block []byte) ([]uint64, Cursor, error) {
	refuse := func(format string, args ...any) ([]uint64, Cursor, error) {
		return dst, at, fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
	}
	length, err := Length(block)
	if err != nil {
		return dst, at, err
	}
	if length != len(block) {
		return refuse("%d bytes, not %d", len(block), length)
	}
	body := block[:length-sumSize]
	if uint32(xxh3.Hash(body)) != binary.LittleEndian.Uint32(block[length-sumSize:]) {
		return refuse("its checksum does not fit")
	}
	flags, n := body[1], int(binary.LittleEndian.Uint16(body[2:]))
	from := Cursor{Begun: flags&flagBegins == 0, After: binary.LittleEndian.Uint64(body[8:])}
	ends, k := flags&flagEnds != 0, uint(flags&63)
	if n > MaxKeys || n == 0 && !ends || !from.Begun && from.After != 0 {
		return refuse("%d hashes, flags %x, after %x", n, flags, from.After)
	}
	if from != at {
		return dst, at, fmt.Errorf("%w: it follows %x (begun: %v), not %x (begun: %v)", ErrPlace, from.After, from.Begun, at.After, at.Begun)
	}
	in := input{bytes: body[headerSize:]}
	first, ok := at.next()
	hashes := dst
	for range n {
		gap, fits := in.gap(k)
		h := first + gap
		if !fits || !ok || h < first {
			return refuse("its gaps lead too far")
		}
		hashes = append(hashes, h)
		first, ok = h+1, h+1 != 0
	}
	if !in.ended() {
		return refuse("bits are left over")
	}
	if want := parameter(at, hashes[len(dst):]); k != want {
		return refuse("gaps for k = %d are written with k = %d", want, k)
	}
	next := Cursor{Begun: true, After: at.After, Done: ends}
	if n > 0 {
		next.After = hashes[len(hashes)-1]
	} else {
		next.Begun = at.Begun
	}
	return hashes, next, nil
}

// Place returns the place that a block says to follow, for those that ask for blocks of any
// place; Length must have accepted it.
func Place(block []byte) Cursor {
	return Cursor{Begun: block[1]&flagBegins == 0, After: binary.LittleEndian.Uint64(block[8:])}
}
