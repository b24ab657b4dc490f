package bfield

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/internal/saved"
	"github.com/syncd-io/syncd/internal/durable"
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

var format = saved.Format{Magic: "BFIELD\x00\x01", Err: ErrFormat}

const (
	fixedHeader = 56
	levelHeader = 24
	alignment   = 64
	flagRepair  = 1
)

func aligned(n uint64) uint64 { return (n + alignment - 1) &^ (alignment - 1) }

// MarshalBinary returns the field as bytes.
func (f *Field) MarshalBinary() ([]byte, error) { return bytes.Join(f.parts(), nil), nil }

// Save writes the field to a file. After a crash there is the old file or the new one. Callers of one path take turns.
func (f *Field) Save(path string) error { return durable.WriteFile(path, f.parts()...) }

// parts returns the saved form: the header, and each array with the zeros behind it.
func (f *Field) parts() [][]byte {
	p, order := &f.plan, binary.LittleEndian
	b := saved.Append([]byte(format.Magic), uint64(f.seed), p.Keys, p.Values)
	flags := uint16(0)
	if f.repaired {
		flags |= flagRepair
	}
	for _, n := range []uint16{uint16(p.Nu), uint16(p.Kappa), uint16(p.Hashes), flags} {
		b = order.AppendUint16(b, n)
	}
	b = saved.Append(b, math.Float64bits(p.CellsPerKey), uint64(len(f.levels)))
	for i := range f.levels {
		a := &f.levels[i]
		b = saved.Append(b, a.bits, a.keys, xxh3.Hash(a.bytes))
	}
	parts := padded(nil, saved.Sealed(b))
	for i := range f.levels {
		parts = padded(parts, f.levels[i].bytes)
	}
	return parts
}

// padded appends a part, and zeros up to the alignment.
func padded(parts [][]byte, part []byte) [][]byte {
	n := uint64(len(part))
	return append(parts, part, make([]byte, aligned(n)-n))
}

// UnmarshalBinary makes the field what MarshalBinary saved, with the same answers. It copies the bytes. It fails with ErrFormat if they are
// anything but a whole field; the field is then as it was.
func (f *Field) UnmarshalBinary(data []byte) error {
	return saved.Unmarshal(f, bytes.Clone(data), FieldOf)
}

// Open returns the field saved in a file, and reads all of it into memory.
// Later changes of the file change nothing. FieldOf is for bytes that are mapped
// into memory.
//
// It fails with ErrFormat if the file holds anything but a whole field.
func Open(path string) (*Field, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := FieldOf(data)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

// FieldOf is the Field that MarshalBinary or Save saved as data. It reads all
// of data once, to verify it, and then uses it where it lies, as ribbon.MapOf does. So
// data must stay as it is for as long as the field, or what RepairedFrom has made of
// it, is used. A file that is mapped into memory is shared by processes, and what is
// not asked for need not be in memory. If the file is cut, a look-up ends the process,
// or answers Absent. The caller must prevent that.
//
// It fails with ErrFormat if data is anything but a whole field.
func FieldOf(data []byte) (*Field, error) {
	head := uint64(fixedHeader + saved.SumSize)
	if len(data) >= fixedHeader {
		head += levelHeader * min(binary.LittleEndian.Uint64(data[fixedHeader-8:]), MaxLevels)
	}
	in := format.Read(data[:min(head, uint64(len(data)))])
	f := &Field{seed: seed(in.Word()), workers: 1}
	p := &f.plan
	p.Keys, p.Values = in.Word(), in.Word()
	p.Nu, p.Kappa, p.Hashes = int(in.Uint16()), int(in.Uint16()), int(in.Uint16())
	flags := in.Uint16()
	f.repaired = flags&flagRepair != 0
	p.CellsPerKey = math.Float64frombits(in.Word())
	c := Config{Keys: p.Keys, Values: p.Values, Nu: p.Nu, Kappa: p.Kappa, Hashes: p.Hashes, CellsPerKey: p.CellsPerKey}
	if err := c.check(); err != nil || p.Nu == 0 || flags&^flagRepair != 0 {
		in.Refuse("no field has its parameters (%v)", err)
	}
	levels := in.Word()
	if levels < 1 || levels > MaxLevels {
		in.Refuse("%d arrays", levels)
	}
	heads := in.Words(3 * levels)
	if err := in.End(); err != nil {
		return nil, err
	}
	in.Then(data[head:])
	if !zeros(in.Bytes(aligned(head) - head)) {
		in.Refuse("bytes behind its header are not zero")
	}
	for i := uint64(0); i < levels && in.Err() == nil; i++ {
		a := array{bits: heads[3*i], keys: heads[3*i+1]}
		if a.bits < leastBits || a.bits/8 > in.Left() {
			return nil, in.Errorf("array %d has %d bits, more or fewer than there can be", i, a.bits)
		}
		n := bytesFor(a.bits)
		a.places, a.bytes = a.bits-uint64(p.Nu)+1, in.Bytes(n)
		if !zeros(in.Bytes(aligned(n)-n)) || xxh3.Hash(a.bytes) != heads[3*i+2] {
			in.Refuse("array %d is damaged", i)
		}
		f.levels = append(f.levels, a)
	}
	if err := in.End(); err != nil {
		return nil, err
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
