package ribbon

import (
	"bytes"
	"encoding"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// A file is what MarshalBinary returns; what is done to it while the structure is open
// changes no answer and ends no process; and no other file is opened.
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
			want, err := s.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "file")
			if err := s.(interface{ Save(path string) error }).Save(path); err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, want) {
				t.Fatalf("the file is not what MarshalBinary returns (%v)", err)
			}
			opened, err := openLike(s, path)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int64{int64(len(want)) / 2, 0} {
				if err := os.Truncate(path, size); err != nil {
					t.Fatal(err)
				}
				if data, err := opened.MarshalBinary(); err != nil || !bytes.Equal(data, want) {
					t.Errorf("after the file was cut to %d bytes: %v, %d bytes", size, err, len(data))
				}
				if _, err := openLike(s, path); !errors.Is(err, ErrFormat) {
					t.Errorf("opening %d bytes: %v", size, err)
				}
			}
			if _, err := openLike(s, path+"x"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("opening what is not there: %v", err)
			}
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
