package stream

import (
	"bytes"
	"testing"

	"github.com/multiformats/go-varint"
)

// Messages never panic, and never allocate what they announce; what was written is read
// again, byte for byte.
func FuzzMessage(f *testing.F) {
	var b bytes.Buffer
	if err := WriteMessage(&b, []byte("a message")); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(append(varint.ToUvarint(1<<40), 1, 2, 3))
	f.Add([]byte{0x10})
	f.Fuzz(func(t *testing.T, b []byte) {
		message, err := ReadMessage(bytes.NewReader(b), 16<<10)
		if err != nil {
			return
		}
		var frame bytes.Buffer
		must(t, WriteMessage(&frame, message))
		if !bytes.HasPrefix(b, frame.Bytes()) {
			t.Errorf("%x was read as %x", b, message)
		}
	})
}
