package folder

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// What the copy of the list writes over many changes is what it holds, within a factor, and
// not that for each change anew.
func TestListCopyIsAppended(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	id := dbadapter.NamespaceID{1}
	path := filepath.Join(Path(dir, id), ListFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	_, keep := OpenListCopy(log, dir, id)
	var list [][]byte
	var wrote, before int64
	var was os.FileInfo
	for i := range 300 {
		list = append(list, bytes.Repeat(fmt.Appendf(nil, "%08d", i), 25))
		keep(list)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if was != nil && os.SameFile(was, info) {
			wrote += info.Size() - before
		} else { // the file was written anew
			wrote += info.Size()
		}
		was, before = info, info.Size()
	}
	if wrote > 2*before {
		t.Errorf("%d bytes were written for a copy of %d", wrote, before)
	}
	check := func(what string, want [][]byte) {
		t.Helper()
		listed, again := OpenListCopy(log, dir, id)
		if !slices.EqualFunc(listed, want, bytes.Equal) {
			t.Errorf("%s: %d statements are read, want %d", what, len(listed), len(want))
		}
		keep = again
	}
	check("opened again", list)
	keep(list[:100]) // the others have left the list
	check("most have left", list[:100])
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	one := (len(good) - len(listMagic)) / 100
	for what, c := range map[string]struct {
		harm func([]byte) []byte
		want [][]byte
	}{
		"cut short": {func(b []byte) []byte { return b[:len(b)-1] }, list[:99]},
		"a bit":     {func(b []byte) []byte { b[len(listMagic)+50*one+4] ^= 1; return b }, slices.Concat(list[:50], list[51:100])},
		"a length":  {func(b []byte) []byte { b[len(listMagic)+99*one] = 0xff; return b }, list[:99]},
	} {
		if err := os.WriteFile(path, c.harm(bytes.Clone(good)), 0o600); err != nil {
			t.Fatal(err)
		}
		check(what, c.want)
		keep(list[:101])
		check(what+", and written again", list[:101])
	}
}

// A copy that cannot be read now may hold what the store has lost: it stays.
func TestListCopyThatIsNotReadStays(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	id := dbadapter.NamespaceID{1}
	path := filepath.Join(Path(dir, id), ListFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path); err != nil { // reading it fails, also for root
		t.Skipf("NOT TESTED: %v", err)
	}
	listed, keep := OpenListCopy(log, dir, id)
	keep([][]byte{[]byte("statement")})
	if target, err := os.Readlink(path); err != nil || target != path || listed != nil {
		t.Errorf("it was replaced: %v, %d statements", err, len(listed))
	}
}
