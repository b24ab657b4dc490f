package nested

import (
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/internal/saved"
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
var format = saved.Format{Magic: "NESTED\x00\x01", Err: ErrFormat}

// ErrFormat is returned for bytes that are not a saved field, or a damaged one.
var ErrFormat = errors.New("nested: not a saved field")

// MarshalBinary returns the field as bytes.
func (f *Field) MarshalBinary() ([]byte, error) {
	b := saved.Append([]byte(format.Magic), uint64(len(f.order)), uint64(len(f.fields)))
	b = saved.Append(b, f.order...)
	var fields []byte
	for i, field := range f.fields {
		data, err := field.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("nested: save layer %d: %w", i, err)
		}
		b = saved.Append(b, uint64(f.layers[i].frequent), uint64(len(data)))
		fields = append(fields, data...)
	}
	return saved.Sealed(append(b, fields...)), nil
}

// FieldOf is the Field that MarshalBinary saved as data. It verifies data and then
// uses it where it lies, as bfield.FieldOf does. So data must stay as it is for as long as
// the field is used. It fails with ErrFormat if data is anything but a whole field.
func FieldOf(data []byte) (*Field, error) {
	in := format.Read(data)
	values, fields := in.Word(), in.Word()
	if fields > mostLayers || (values == 0) != (fields == 0) {
		in.Refuse("%d values in %d fields", values, fields)
	}
	f := &Field{order: in.Words(values)}
	lengths := in.Words(2 * min(fields, mostLayers))
	first := uint64(0)
	for i := uint64(0); i < fields && in.Err() == nil; i++ {
		frequent := lengths[2*i]
		if frequent == 0 || frequent > values-first {
			return nil, in.Errorf("field %d has %d of %d values", i, frequent, values-first)
		}
		field, err := bfield.FieldOf(in.Bytes(lengths[2*i+1]))
		if err != nil {
			return nil, in.Errorf("field %d: %v", i, err)
		}
		l := layer{keys: field.Stats().Keys, first: int(first), frequent: int(frequent), last: i+1 == fields}
		if field.Plan().Values != l.codes() || !field.Stats().Repaired {
			return nil, in.Errorf("field %d has %d codes, %d are needed, or is not repaired", i, field.Plan().Values, l.codes())
		}
		f.layers, f.fields = append(f.layers, l), append(f.fields, field)
		first += frequent
	}
	if first != values {
		in.Refuse("%d of %d values have codes", first, values)
	}
	return f, in.End()
}
