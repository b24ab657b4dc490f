package bloom

import (
	"encoding"
	"os"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
)

func TestFiles(t *testing.T) {
	open := func(path string) (encoding.BinaryMarshaler, error) { return Open(path) }
	for name, f := range samples(t) {
		t.Run(name, func(t *testing.T) {
			fieldtest.Files(t, f, fieldtest.Kept{Open: open, Format: ErrFormat, Read: os.ReadFile, Write: os.WriteFile})
		})
	}
}
