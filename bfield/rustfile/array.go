package rustfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spaolacci/murmur3"
)

// ErrFormat is returned for bytes that are not a file of rust-bfield, or one that is
// cut.
var ErrFormat = errors.New("rustfile: not a file of rust-bfield")

const (
	magic    = "\xbf\x1d"
	maxOther = 0xffff - 4
)

// shape is what all arrays of a field share.
type shape struct{ hashes, nu, kappa int }

func (s shape) valid() bool {
	return s.hashes >= 1 && s.hashes <= maxHashes && s.nu >= 1 && s.nu <= maxNu &&
		s.kappa >= 1 && s.kappa <= maxKappa && s.kappa <= s.nu
}

// array is one file.
type array struct {
	shape
	other []byte // the application's parameters; nil if it has none
	size  uint64 // in bits
	bits  []byte
	file  []byte // all of it; bits and other lie in it
}

// arrayOf is the array that a file holds. It keeps data.
func arrayOf(data []byte) (array, error) {
	refuse := func(why string) (array, error) {
		return array{}, fmt.Errorf("an array of %d bytes: %s: %w", len(data), why, ErrFormat)
	}
	if len(data) < 4 || string(data[:2]) != magic {
		return refuse("it does not begin like one")
	}
	header := int(binary.BigEndian.Uint16(data[2:]))
	if header < 4 || len(data) < 12+header {
		return refuse("its header is cut short")
	}
	h := data[4 : 4+header]
	a := array{
		shape: shape{int(h[0]), int(h[1]), int(h[2])}, file: data,
		size: binary.BigEndian.Uint64(data[4+header:]), bits: data[12+header:],
	}
	if !a.valid() || h[3] > 1 {
		return refuse("no field has its parameters")
	}
	if h[3] == 1 {
		a.other = h[4:]
	}
	// N − ν is a divisor.
	if a.size <= uint64(a.nu) || (a.size-1)/8+1 != uint64(len(a.bits)) {
		return refuse("it is longer or shorter than it says")
	}
	return a, nil
}

// newArray returns an array of zeros.
func newArray(s shape, size uint64, other []byte) array {
	header := []byte{byte(s.hashes), byte(s.nu), byte(s.kappa), 0}
	if other != nil {
		header[3] = 1
		header = append(header, other...)
	}
	file := append(make([]byte, 0, uint64(12+len(header))+(size-1)/8+1), magic...)
	file = binary.BigEndian.AppendUint16(file, uint16(len(header)))
	file = append(file, header...)
	file = binary.BigEndian.AppendUint64(file, size)
	start := len(file)
	file = file[:cap(file)]
	return array{shape: s, other: other, size: size, bits: file[start:], file: file}
}

// hash is what is left of a key.
type hash struct{ a, b uint64 }

func hashOf(key []byte) hash {
	a, b := murmur3.Sum128(key)
	return hash{a, b}
}

// place returns at which bit window i begins.
func (a *array) place(h hash, i int) uint64 {
	return (h.a + uint64(i)*h.b) % (a.size - uint64(a.nu))
}

// window returns the ν bits from place on.
func (a *array) window(place uint64) marker {
	first, last := place/8, (place+uint64(a.nu)-1)/8
	if a.nu <= 57 && first+8 <= uint64(len(a.bits)) {
		return marker{0, binary.BigEndian.Uint64(a.bits[first:]) << (place % 8) >> (64 - a.nu)}
	}
	// A window of 128 bits may touch 17 bytes. Of the last one only the bits that
	// belong to it are taken in.
	var m marker
	for _, b := range a.bits[first:last] {
		m = m.shifted(8)
		m.lo |= uint64(b)
	}
	rest := uint(8*(last+1) - place - uint64(a.nu))
	m = m.shifted(8 - rest)
	m.lo |= uint64(a.bits[last] >> rest)
	return m.and(mask(a.nu))
}

// common returns what the windows of a key have in common.
func (a *array) common(h hash) marker {
	m := mask(a.nu)
	for i := 0; i < a.hashes && m.ones() >= a.kappa; i++ {
		m = m.and(a.window(a.place(h, i)))
	}
	return m
}

func (a *array) insert(h hash, value uint64) {
	ones := places(value, a.nu, a.kappa)
	for i := range a.hashes {
		end := a.place(h, i) + uint64(a.nu) - 1
		for _, one := range ones {
			at := end - uint64(one)
			a.bits[at/8] |= 0x80 >> (at % 8)
		}
	}
}
