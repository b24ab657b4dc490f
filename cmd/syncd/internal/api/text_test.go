package api

import "testing"

// TestPrintable: a text of a member is one line of printable characters.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain é": "plain é", "two\nlines\r\n": "two lines  ", "a\x01b\x1b[2J\x7f": `a\x01b\x1b[2J\x7f`,
		"\xff\u202e\ufffd": `\xff\u202e` + "\ufffd", "": "", `"q\"`: `"q\"`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: %q; want %q", in, got, want)
		}
	}
}
