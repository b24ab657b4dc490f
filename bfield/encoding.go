package bfield

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/zeebo/xxh3"
)

// A saved field, all numbers little-endian:
//
//	offset  length  what
//	0       8       "BFIELD" 0x00 0x01 (the version)
//	8       8       seed
//	16      8       n, the keys planned for
//	24      8       θ
//	32      4 × 2   ν, κ, k, flags (1: repaired)
//	40      8       m/n, IEEE 754
//	48      8       number of arrays, L
//	56      24 × L  of each array: its length in bits, its keys, XXH3-64 of its bytes
//	        8       XXH3-64 of all above
//	        …       zeros up to a multiple of 64
//	        …       the bytes of each array, with zeros up to a multiple of 64
//
// Bit i of an array is bit i mod 8 of byte i/8. So bytes are looked up in where
// they lie. The checksums find damage, not malice: nothing here is secret.
// But no bytes, forged ones included, make a reader panic or allocate more than
// they are long.

// ErrFormat is returned for bytes that are not a saved field, or a damaged one.
var ErrFormat = errors.New("bfield: not a saved field")

const (
	magic       = "BFIELD\x00\x01"
	fixedHeader = 56
	levelHeader = 24
	alignment   = 64
	flagRepair  = 1
)

func aligned(n uint64) uint64 { return (n + alignment - 1) &^ (alignment - 1) }

func headerLength(levels int) uint64 {
	return aligned(fixedHeader + uint64(levels)*levelHeader + 8)
}

// MarshalBinary returns the field as bytes. The inserted keys of a field that
// is not sealed are not part of it.
func (f *Field) MarshalBinary() ([]byte, error) {
	b := f.header()
	for i := range f.levels {
		b = append(b, f.levels[i].bytes...)
		b = append(b, make([]byte, aligned(uint64(len(b)))-uint64(len(b)))...)
	}
	return b, nil
}

// header returns all that precedes the arrays, with room for these.
func (f *Field) header() []byte {
	length := headerLength(len(f.levels))
	size := length
	for i := range f.levels {
		size += aligned(uint64(len(f.levels[i].bytes)))
	}
	p, order := &f.plan, binary.LittleEndian
	b := make([]byte, 0, size)
	b = append(b, magic...)
	b = order.AppendUint64(b, uint64(f.seed))
	b = order.AppendUint64(b, p.Keys)
	b = order.AppendUint64(b, p.Values)
	flags := uint16(0)
	if f.repaired {
		flags |= flagRepair
	}
	for _, n := range []uint16{uint16(p.Nu), uint16(p.Kappa), uint16(p.Hashes), flags} {
		b = order.AppendUint16(b, n)
	}
	b = order.AppendUint64(b, math.Float64bits(p.CellsPerKey))
	b = order.AppendUint64(b, uint64(len(f.levels)))
	for i := range f.levels {
		a := &f.levels[i]
		b = order.AppendUint64(b, a.bits)
		b = order.AppendUint64(b, a.keys)
		b = order.AppendUint64(b, xxh3.Hash(a.bytes))
	}
	b = order.AppendUint64(b, xxh3.Hash(b))
	return b[:length]
}

// UnmarshalBinary makes the field what MarshalBinary saved: sealed, and with
// the same answers. It copies the bytes. It fails with ErrFormat if they are
// anything but a whole field; the field is then as it was.
func (f *Field) UnmarshalBinary(data []byte) error {
	g, err := FieldOf(bytes.Clone(data))
	if err == nil {
		*f = *g
	}
	return err
}

// FieldOf is the Field that MarshalBinary or Save saved as data, sealed. It reads all
// of data once, to verify it, and then uses it where it lies, as ribbon.MapOf does. So
// data must stay as it is for as long as the field, or what RepairedFrom has made of
// it, is used. A file that is mapped into memory is shared by processes, and what is
// not asked for need not be in memory. If the file is cut, a look-up ends the process,
// or answers Absent. The caller must prevent that.
//
// It fails with ErrFormat if data is anything but a whole field.
func FieldOf(data []byte) (*Field, error) {
	refuse := func(format string, args ...any) (*Field, error) {
		return nil, fmt.Errorf("load a field of %d bytes: %s: %w", len(data), fmt.Sprintf(format, args...), ErrFormat)
	}
	order := binary.LittleEndian
	if len(data) < fixedHeader || string(data[:6]) != magic[:6] {
		return refuse("it does not begin like one")
	}
	if string(data[6:8]) != magic[6:] {
		return refuse("version %d is not known, only %d is", int(data[6])<<8|int(data[7]), 1)
	}
	levels := order.Uint64(data[48:])
	if levels < 1 || levels > MaxLevels {
		return refuse("%d arrays", levels)
	}
	length := headerLength(int(levels))
	if uint64(len(data)) < length {
		return refuse("it is cut short")
	}
	sumAt := fixedHeader + levels*levelHeader
	if xxh3.Hash(data[:sumAt]) != order.Uint64(data[sumAt:]) {
		return refuse("its header is damaged")
	}
	f := &Field{
		plan: Plan{
			Keys: order.Uint64(data[16:]), Values: order.Uint64(data[24:]),
			Nu: int(order.Uint16(data[32:])), Kappa: int(order.Uint16(data[34:])), Hashes: int(order.Uint16(data[36:])),
			CellsPerKey: math.Float64frombits(order.Uint64(data[40:])),
		},
		seed: seed(order.Uint64(data[8:])), workers: 1, sealed: true,
	}
	flags := order.Uint16(data[38:])
	f.repaired = flags&flagRepair != 0
	p := &f.plan
	c := Config{Keys: p.Keys, Values: p.Values, Nu: p.Nu, Kappa: p.Kappa, Hashes: p.Hashes, CellsPerKey: p.CellsPerKey}
	if err := c.check(); err != nil || p.Nu == 0 || flags&^flagRepair != 0 {
		return refuse("no field has its parameters (%v)", err)
	}
	at := length
	for i := range levels {
		h := data[fixedHeader+i*levelHeader:]
		a := array{bits: order.Uint64(h), keys: order.Uint64(h[8:])}
		left := uint64(len(data)) - at
		if a.bits < leastBits || a.bits/8 > left || bytesFor(a.bits) > left || aligned(bytesFor(a.bits)) > left {
			return refuse("array %d has %d bits, more or fewer than there can be", i, a.bits)
		}
		a.places = a.bits - uint64(p.Nu) + 1
		a.bytes = data[at : at+bytesFor(a.bits) : at+bytesFor(a.bits)]
		if xxh3.Hash(a.bytes) != order.Uint64(h[16:]) {
			return refuse("array %d is damaged", i)
		}
		f.levels = append(f.levels, a)
		end := at + aligned(bytesFor(a.bits))
		if !zeros(data[at+bytesFor(a.bits) : end]) {
			return refuse("bytes behind array %d are not zero", i)
		}
		at = end
	}
	if at != uint64(len(data)) || !zeros(data[sumAt+8:length]) {
		return refuse("bytes are left over")
	}
	f.prepare()
	return f, nil
}

func zeros(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
