package cuckoo

import (
	"encoding"
	"os"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
)

func TestFiles(t *testing.T) {
	mapBytes, tableBytes := samples(t)
	type table interface {
		fieldtest.Saved
		encoding.BinaryUnmarshaler
	}
	for name, c := range map[string]struct {
		saved []byte
		empty table
		open  func(path string) (encoding.BinaryMarshaler, error)
	}{
		"Map":   {mapBytes, new(Map[uint64, uint64]), func(p string) (encoding.BinaryMarshaler, error) { return OpenMap[uint64, uint64](p) }},
		"Table": {tableBytes, new(Table), func(p string) (encoding.BinaryMarshaler, error) { return Open(p) }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.empty.UnmarshalBinary(c.saved); err != nil {
				t.Fatal(err)
			}
			fieldtest.Files(t, c.empty, fieldtest.Kept{Open: c.open, Format: ErrFormat, Read: os.ReadFile, Write: os.WriteFile})
		})
	}
}
