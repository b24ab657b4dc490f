package cuckoo

import (
	"bytes"
	"encoding"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A file is what MarshalBinary returns; what is done to it while the table is open
// changes no answer and ends no process; and no other file is opened.
func TestFiles(t *testing.T) {
	mapBytes, tableBytes := samples(t)
	type table interface {
		encoding.BinaryMarshaler
		encoding.BinaryUnmarshaler
		Save(path string) error
	}
	for name, c := range map[string]struct {
		saved []byte
		empty table
		open  func(path string) (encoding.BinaryMarshaler, error)
	}{
		"Map":   {mapBytes, new(Map[uint64, uint64]), func(p string) (encoding.BinaryMarshaler, error) { return OpenMap[uint64, uint64](p) }},
		"Wide":  {sampleWide(t), new(Wide[uint64, uint64]), func(p string) (encoding.BinaryMarshaler, error) { return OpenWide[uint64, uint64](p) }},
		"Table": {tableBytes, new(Table), func(p string) (encoding.BinaryMarshaler, error) { return Open(p) }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.empty.UnmarshalBinary(c.saved); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "file")
			if err := c.empty.Save(path); err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, c.saved) {
				t.Fatalf("the file is not what MarshalBinary returns (%v)", err)
			}
			opened, err := c.open(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, append(bytes.Clone(c.saved), 0), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := c.open(path); !errors.Is(err, ErrFormat) {
				t.Errorf("opening a file with a byte too many: %v", err)
			}
			for _, size := range []int64{int64(len(c.saved)) / 2, 0} {
				if err := os.Truncate(path, size); err != nil {
					t.Fatal(err)
				}
				if data, err := opened.MarshalBinary(); err != nil || !bytes.Equal(data, c.saved) {
					t.Errorf("after the file was cut to %d bytes: %v, %d bytes", size, err, len(data))
				}
				if _, err := c.open(path); !errors.Is(err, ErrFormat) {
					t.Errorf("opening %d bytes: %v", size, err)
				}
			}
			if _, err := c.open(path + "x"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("opening what is not there: %v", err)
			}
		})
	}
}
