package netio

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
)

// Addresses that a peer sends are dialled, written into the book and read again;
// other bytes are skipped.
func FuzzAddrs(f *testing.F) {
	f.Add([]byte("\x04\xc0\x00\x02\x01\x06\x0f\xa1"), []byte{})
	f.Add([]byte{4}, bytes.Repeat([]byte{6}, 600))
	f.Add([]byte("\x2a\x03a\x01b\x04\xc0\x00\x02\x01\x06\x0f\xa1"), []byte{}) // a zone that cannot be printed
	f.Fuzz(func(t *testing.T, a, b []byte) {
		addrs := ParseAddrs([][]byte{a, b, a})
		if again := ParseAddrs(AddrBytes(addrs)); len(again) != len(addrs) || len(addrs) > 2 {
			t.Errorf("%v became %v", addrs, again)
		}
		for _, addr := range addrs {
			if text := addr.String(); strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q is taken, and cannot be printed", text)
			}
		}
	})
}
