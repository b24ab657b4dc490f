package infile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Write replaces a file as a whole: when writing fails, or the name cannot be taken,
// the old one is what is left, and nothing beside it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write := func(text string, err error) error {
		return Write(path, func(w io.Writer) error {
			if _, failed := io.WriteString(w, text); failed != nil {
				return failed
			}
			return err
		})
	}
	full := errors.New("the disk is full")
	for _, step := range []struct {
		text string
		err  error
		want string
	}{
		{strings.Repeat("longer than what comes ", 1<<17), nil, strings.Repeat("longer than what comes ", 1<<17)},
		{"second", nil, "second"},
		{strings.Repeat("cut", 1<<20), full, "second"},
		{"", nil, ""},
	} {
		if err := write(step.text, step.err); !errors.Is(err, step.err) {
			t.Errorf("writing: %v, want %v", err, step.err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != step.want {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(step.want))
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := write("x", nil); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Of a file that begins otherwise no more than the magic is read.
func TestParse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for text, want := range map[string]string{"": "", "MA": "MA", "MAGIC": "MAGIC", "MAGIC and more": "MAGIC and more", "OTHER and more": "OTHER"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := Parse(path, "MAGIC", func(b []byte) error { got = string(b); return nil }); err != nil || got != want {
			t.Errorf("of %q: %q, %v, want %q", text, got, err, want)
		}
	}
	if err := Parse(path+"x", "MAGIC", func([]byte) error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
