package fieldtest

import (
	"bytes"
	"encoding"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/internal/saved"
)

// Saved is a structure that can be written to a file.
type Saved interface {
	encoding.BinaryMarshaler
	Save(path string) error
}

// Forms are the saved forms of a type.
type Forms[S Saved] struct {
	// Samples are some structures, by name.
	Samples func(testing.TB) map[string]S
	// Golden are the XXH3 of what they are saved as. They pin the format and every constant
	// that places a key: what one version saves must answer in the next.
	Golden map[string]uint64
	// Read is UnmarshalBinary, and Open reads a file.
	Read func(data []byte) (S, error)
	Open func(path string) (S, error)
	// Err is their error for what is no saved form.
	Err error
	// Ask looks keys up in all ways.
	Ask func(*testing.T, S)
}

// Test holds each sample to its golden form, and its file to what Files says.
func (f Forms[S]) Test(t *testing.T) {
	for name, s := range f.Samples(t) {
		t.Run(name, func(t *testing.T) {
			data := marshal(t, s)
			if got := xxh3.Hash(data); got != f.Golden[name] {
				t.Errorf("it is saved as %#x, want %#x", got, f.Golden[name])
			}
			if !f.Try(t, data) {
				t.Error("what is saved is refused")
			}
			Files(t, s, f.Open, f.Err)
		})
	}
}

// Fuzz tries bytes under a right checksum.
func (f Forms[S]) Fuzz(fuzz *testing.F) {
	for _, s := range f.Samples(fuzz) {
		fuzz.Add(marshal(fuzz, s))
	}
	fuzz.Fuzz(func(t *testing.T, data []byte) { f.Try(t, Resealed(data)) })
}

// Try reads bytes. They are refused by the right error. Or they are a structure that answers,
// and is saved as the same bytes.
func (f Forms[S]) Try(t *testing.T, data []byte) (accepted bool) {
	t.Helper()
	s, err := f.Read(bytes.Clone(data))
	if err != nil {
		if !errors.Is(err, f.Err) {
			t.Fatalf("error %v does not wrap %v", err, f.Err)
		}
		return false
	}
	if again := marshal(t, s); !bytes.Equal(again, data) {
		t.Fatalf("%d bytes are read and saved as %d others", len(data), len(again))
	}
	f.Ask(t, s)
	return true
}

// Resealed replaces the checksum, so that what precedes it is looked at.
func Resealed(data []byte) []byte {
	if len(data) < saved.SumSize {
		return data
	}
	return saved.Sealed(bytes.Clone(data[:len(data)-saved.SumSize]))
}

func marshal(t testing.TB, s encoding.BinaryMarshaler) []byte {
	t.Helper()
	data, err := s.MarshalBinary()
	if err != nil {
		t.Fatalf("saving: %v", err)
	}
	return data
}

// Files saves a structure and opens it again. The file is what MarshalBinary returns. What is
// done to it while the structure is open changes no answer and ends no process. A file that
// is cut, longer or not there is refused. A save that fails leaves nothing.
func Files[S Saved](t *testing.T, s S, open func(path string) (S, error), format error) {
	t.Helper()
	want := marshal(t, s)
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	if err := errors.Join(os.WriteFile(path, append(bytes.Clone(want), "older and longer"...), 0o600), s.Save(path)); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, want) {
		t.Fatalf("the file is not what MarshalBinary returns (%v)", err)
	}
	opened, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, changed := range [][]byte{append(bytes.Clone(want), 0), want[:len(want)/2], nil} {
		// The file itself is cut and written again: the one that is open is the same.
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(marshal(t, opened), want) {
			t.Errorf("what is open is another, after its file was changed to %d bytes of %d", len(changed), len(want))
		}
		if _, err := open(path); !errors.Is(err, format) {
			t.Errorf("opening %d bytes of %d: %v", len(changed), len(want), err)
		}
	}
	if _, err := open(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening what is not there: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(path); err == nil {
		t.Error("saved over a folder")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("a failed save left %v, %v", left, err)
	}
}
