package bfield

import (
	"io"

	"github.com/syncd-io/syncd/bfield/internal/infile"
)

// Save writes the field to a file. It writes and syncs a temporary one next to
// it, which then takes its name. After a crash there is the old file or the new
// one.
func (f *Field) Save(path string) error { return infile.Write(path, f.write) }

// write writes the field, array by array.
func (f *Field) write(w io.Writer) error {
	if _, err := w.Write(f.header()); err != nil {
		return err
	}
	var rest [alignment]byte
	for i := range f.levels {
		b := f.levels[i].bytes
		if _, err := w.Write(b); err != nil {
			return err
		}
		if _, err := w.Write(rest[:aligned(uint64(len(b)))-uint64(len(b))]); err != nil {
			return err
		}
	}
	return nil
}

// Open returns the field saved in a file, sealed, and reads all of it into memory.
// Later changes of the file change nothing. FieldOf is for bytes that are mapped
// into memory.
//
// It fails with ErrFormat if the file holds anything but a whole field.
func Open(path string) (f *Field, err error) {
	// Of another version all is read, and FieldOf says which.
	err = infile.Parse(path, magic[:6], func(data []byte) (err error) {
		f, err = FieldOf(data)
		return err
	})
	return f, err
}
