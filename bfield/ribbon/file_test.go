package ribbon

import (
	"encoding"
	"os"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
)

func TestFiles(t *testing.T) {
	all := samples(t)
	code, err := NewCode(map[uint64]uint64{1: 5, 2: 2, 3: 1})
	if err != nil {
		t.Fatal(err)
	}
	coded, err := BuildCoded(Config{}, code, keyed.Numbers([]uint64{10, 20, 30}), []uint64{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	all["coded"] = coded
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			open := func(path string) (encoding.BinaryMarshaler, error) { return openLike(s, path) }
			fieldtest.Files(t, s.(fieldtest.Saved), fieldtest.Kept{Open: open, Format: ErrFormat, Read: os.ReadFile, Write: os.WriteFile})
		})
	}
}

// openLike opens a file as what s is.
func openLike(s saved, path string) (encoding.BinaryMarshaler, error) {
	switch s.(type) {
	case *Map:
		return OpenMap(path)
	case *Retrieval:
		return OpenRetrieval(path)
	case *Filter:
		return OpenFilter(path)
	}
	return OpenCoded(path)
}
