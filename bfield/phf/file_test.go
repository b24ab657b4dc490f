package phf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A file is what MarshalBinary returns; what is done to it while the function is open changes
// no answer; and no other file is opened.
func TestFiles(t *testing.T) {
	for name, f := range samples(t) {
		want, err := f.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "file")
		if err := f.Save(path); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, want) {
			t.Fatalf("%s: the file is not what MarshalBinary returns (%v)", name, err)
		}
		opened, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{int64(len(want)) / 2, 0} {
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
			if data, err := opened.MarshalBinary(); err != nil || !bytes.Equal(data, want) {
				t.Errorf("%s: after the file was cut to %d bytes: %v, %d bytes", name, size, err, len(data))
			}
			if _, err := Open(path); !errors.Is(err, ErrFormat) {
				t.Errorf("%s: opening %d bytes: %v", name, size, err)
			}
		}
		if _, err := Open(path + "x"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: opening what is not there: %v", name, err)
		}
	}
}
