package fieldtest

import (
	"bytes"
	"encoding"
	"errors"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/internal/saved"
)

// Forms are the saved forms of a type.
type Forms[S encoding.BinaryMarshaler] struct {
	// Samples are some structures, by name.
	Samples func(testing.TB) map[string]S
	// Golden are the XXH3 of what they are saved as. They pin the format and every constant
	// that places a key: what one version saves must answer in the next.
	Golden map[string]uint64
	// Read is UnmarshalBinary.
	Read func(data []byte) (S, error)
	// Err is its error for what is no saved form.
	Err error
	// Ask looks keys up in all ways.
	Ask func(*testing.T, S)
}

// Test holds each sample to its golden form.
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
