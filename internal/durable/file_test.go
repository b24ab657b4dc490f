package durable

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// Whatever bit of a file is flipped, and wherever it is cut, its content is not taken: what
// looks like a file without an envelope then is none of ours.
func TestFileShowsDamage(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "file"), "kind", "owner"}
	if err := f.Save([]byte("\xa1content\n")); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(bad []byte) {
		t.Helper()
		if err := os.WriteFile(f.Path, bad, FileMode); err != nil {
			t.Fatal(err)
		}
		content, owner, err := f.Load()
		if plain := err == nil && owner == "" && (len(content) == 0 || content[0] < 0xa0 || content[0] > 0xbf); !plain && (!errors.Is(err, ErrDamaged) || !errors.Is(err, dbadapter.ErrCorrupt)) {
			t.Errorf("%q is taken as %q of %q: %v", bad, content, owner, err)
		}
	}
	for i := range good {
		check(good[:i])
		for bit := range 8 {
			bad := []byte(string(good))
			bad[i] ^= 1 << bit
			check(bad)
		}
	}
	for want, of := range map[string]File{"": f, "another file": {f.Path, "other", "owner"}, "another node's": {f.Path, "kind", "me"}} {
		if err := os.WriteFile(f.Path, good, FileMode); err != nil {
			t.Fatal(err)
		}
		if content, _, err := of.Load(); (err == nil) != (want == "") || err == nil && string(content) != "\xa1content\n" || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %q, %v", of, content, err)
		}
	}
}

func TestSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, want := range []string{path + ".damaged", path + ".damaged-2", path + ".damaged-3"} {
		if err := os.WriteFile(path, []byte(want), FileMode); err != nil {
			t.Fatal(err)
		}
		if to, err := SetAside(path); err != nil || to != want {
			t.Errorf("%s, %v; want %s", to, err, want)
		}
	}
}
