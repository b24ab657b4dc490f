package fieldtest

import (
	"bytes"
	"encoding"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

// Saved is a structure that can be written to a file.
type Saved interface {
	encoding.BinaryMarshaler
	Save(path string) error
}

// Kept is how the files of one kind of structure are read.
type Kept struct {
	// Open reads a file that Save wrote.
	Open func(path string) (encoding.BinaryMarshaler, error)
	// Format is the error that Open gives for what is no file of this kind.
	Format error
	// Read and Write are os.ReadFile and os.WriteFile: this package opens no files itself.
	Read  func(path string) ([]byte, error)
	Write func(path string, data []byte, mode fs.FileMode) error
}

// Files saves a structure and opens it again. The file is what MarshalBinary returns. What is
// done to it while the structure is open changes no answer and ends no process. A file that
// is cut, longer or not there is refused.
func Files(t *testing.T, s Saved, k Kept) {
	t.Helper()
	want, err := s.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	if data, err := k.Read(path); err != nil || !bytes.Equal(data, want) {
		t.Fatalf("the file is not what MarshalBinary returns (%v)", err)
	}
	opened, err := k.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, changed := range [][]byte{append(bytes.Clone(want), 0), want[:len(want)/2], nil} {
		// The file itself is cut and written again: the one that is open is the same.
		if err := k.Write(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if data, err := opened.MarshalBinary(); err != nil || !bytes.Equal(data, want) {
			t.Errorf("what is open, after its file was changed to %d bytes of %d: %v, %d bytes", len(changed), len(want), err, len(data))
		}
		if _, err := k.Open(path); !errors.Is(err, k.Format) {
			t.Errorf("opening %d bytes of %d: %v", len(changed), len(want), err)
		}
	}
	if _, err := k.Open(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening what is not there: %v", err)
	}
}
