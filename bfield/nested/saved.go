package nested

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/internal/infile"
)

// A saved field, all numbers little-endian:
//
//	8 bytes  "NESTED" 0x00 0x01 (the version)
//	8        number of values
//	8        number of fields, 0 without keys
//	for each value, the most frequent first:
//	  8      the value
//	for each field:
//	  8      how many values have codes of their own in it
//	  8      its length
//	         the fields, each as package bfield saves it
//	8        XXH3 of all that is before
//
// The checksums find damage, not malice. But no bytes, forged ones included, make a
// reader panic or allocate more than they are long.
const (
	magic      = "NESTED\x00\x01"
	headerSize = 24
	sumSize    = 8
)

// ErrFormat is returned for bytes that are not a saved field, or a damaged one.
var ErrFormat = errors.New("nested: not a saved field")

// MarshalBinary returns the field as bytes.
func (f *Field) MarshalBinary() ([]byte, error) {
	order := binary.LittleEndian
	b := append([]byte(nil), magic...)
	b = order.AppendUint64(b, uint64(len(f.order)))
	b = order.AppendUint64(b, uint64(len(f.fields)))
	for _, v := range f.order {
		b = order.AppendUint64(b, v)
	}
	var fields []byte
	for i, field := range f.fields {
		saved, err := field.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("nested: save layer %d: %w", i, err)
		}
		b = order.AppendUint64(b, uint64(f.layers[i].frequent))
		b = order.AppendUint64(b, uint64(len(saved)))
		fields = append(fields, saved...)
	}
	b = append(b, fields...)
	return order.AppendUint64(b, xxh3.Hash(b)), nil
}

// UnmarshalBinary makes the field what MarshalBinary saved. It copies the bytes. It fails
// with ErrFormat if they are anything but a whole field; the field is then as it was.
func (f *Field) UnmarshalBinary(data []byte) error {
	g, err := FieldOf(bytes.Clone(data))
	if err == nil {
		*f = *g
	}
	return err
}

// FieldOf is the Field that MarshalBinary or Save saved as data. It verifies data and then
// uses it where it lies, as bfield.FieldOf does. So data must stay as it is for as long as
// the field is used. It fails with ErrFormat if data is anything but a whole field.
func FieldOf(data []byte) (*Field, error) {
	refuse := func(format string, args ...any) (*Field, error) {
		return nil, fmt.Errorf("load a nested field of %d bytes: %s: %w", len(data), fmt.Sprintf(format, args...), ErrFormat)
	}
	order := binary.LittleEndian
	if len(data) < headerSize+sumSize || string(data[:len(magic)]) != magic {
		return refuse("it does not begin like one of version 1")
	}
	body := data[:len(data)-sumSize]
	if xxh3.Hash(body) != order.Uint64(data[len(body):]) {
		return refuse("it is damaged")
	}
	values, fields, body := order.Uint64(body[8:]), order.Uint64(body[16:]), body[headerSize:]
	if fields > mostLayers || (values == 0) != (fields == 0) || values > uint64(len(body))/8 || 8*values+16*fields > uint64(len(body)) {
		return refuse("%d values in %d fields", values, fields)
	}
	f := &Field{}
	for ; uint64(len(f.order)) < values; body = body[8:] {
		f.order = append(f.order, order.Uint64(body))
	}
	first, lengths := uint64(0), body
	body = body[16*fields:]
	for i := range fields {
		frequent, length := order.Uint64(lengths[16*i:]), order.Uint64(lengths[16*i+8:])
		if frequent == 0 || frequent > values-first || length > uint64(len(body)) {
			return refuse("field %d has %d values, %d bytes", i, frequent, length)
		}
		field, err := bfield.FieldOf(body[:length:length])
		if err != nil {
			return refuse("field %d: %v", i, err)
		}
		l := layer{keys: field.Stats().Keys, first: int(first), frequent: int(frequent), last: i+1 == fields}
		if field.Plan().Values != l.codes() || !field.Stats().Repaired {
			return refuse("field %d has %d codes, %d are needed, or is not repaired", i, field.Plan().Values, l.codes())
		}
		f.layers, f.fields = append(f.layers, l), append(f.fields, field)
		first, body = first+frequent, body[length:]
	}
	if first != values || len(body) > 0 {
		return refuse("%d of %d values have codes, %d bytes are left over", first, values, len(body))
	}
	return f, nil
}

// Save writes the field to a file. After a crash there is the old file or the new one.
func (f *Field) Save(path string) error { return infile.Marshal(path, f.MarshalBinary) }

// Open returns the field saved in a file, and reads all of it into memory. It fails with
// ErrFormat if the file holds anything else.
func Open(path string) (f *Field, err error) {
	err = infile.Parse(path, magic, func(data []byte) (err error) {
		f, err = FieldOf(data)
		return err
	})
	return f, err
}
