package pebblekv

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// salvaged are all entries that a salvage takes out of a folder that was closed in order:
// of another one, what ends a list may be torn.
func salvaged(t *testing.T, dir string) (all map[string]string, gaps []kv.Gap, err error) {
	t.Helper()
	all = map[string]string{}
	var last []byte
	gaps, err = Engine{}.Salvage(t.Context(), dir, kv.Salvage{Closed: true, Entry: func(key, value []byte) error {
		if last != nil && bytes.Compare(key, last) <= 0 {
			t.Errorf("%q comes after %q", key, last)
		}
		last = key
		all[string(key)] = string(value)
		return nil
	}})
	return all, gaps, err
}

// A database whose list of tables, or what leads to it, is damaged or lost is read from
// its tables and logs: each key has its newest value, and what was removed stays so,
// singly and by prefix, whether it stands in tables or in the logs.
func TestSalvageWithoutList(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	d := written(t, dir, 0)
	want := map[string]string{}
	for round := range 5 {
		load := d.Load()
		for _, i := range random.Perm(400)[:250] {
			key, value := fmt.Sprintf("key %03d", i), fmt.Sprintf("%d of round %d", i, round)
			if i%5 == round {
				delete(want, key)
				if err := load.Delete([]byte(key)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want[key] = value
			if err := load.Set([]byte(key), []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		if err := load.Flush(); err != nil {
			t.Fatal(err)
		}
		prefix := fmt.Sprintf("key %d", random.IntN(4))
		if err := d.DropPrefix([]byte(prefix)); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(want, func(key, _ string) bool { return strings.HasPrefix(key, prefix) })
		if round == 1 {
			if err := d.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if round < 4 { // the last stays in the log
			if err := d.pebble.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"MANIFEST-*", "marker.manifest.*", "marker.format-version.*", "OPTIONS-*"} {
		for what, harm := range map[string]func(path string) error{
			"lost": os.Remove,
			"cut":  func(path string) error { return os.Truncate(path, 3) },
			"flipped": func(path string) error {
				b, err := os.ReadFile(path)
				if len(b) > 0 {
					b[random.IntN(len(b))] ^= 1 << random.IntN(8)
				}
				return errors.Join(err, os.WriteFile(path, b, 0o600))
			},
		} {
			to := t.TempDir()
			if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(to, pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("no %s: %v", pattern, err)
			}
			if info, err := os.Stat(files[0]); err != nil || what == "cut" && info.Size() <= 3 {
				continue // a marker says all by its name
			}
			if err := harm(files[0]); err != nil {
				t.Fatal(err)
			}
			got, gaps, err := salvaged(t, to)
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("%s %s: %d entries, and %d were written; %v", pattern, what, len(got), len(want), err)
			}
			if pattern == "MANIFEST-*" && (len(gaps) == 0 || !gaps[0].Whole()) {
				t.Errorf("%s %s: it does not say that entries may be older: %v", pattern, what, gaps)
			}
		}
	}
}

// Where neither a table nor a log is left, the error says what to do.
func TestNothingToSalvage(t *testing.T) {
	dir := t.TempDir()
	d := written(t, dir, 60)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.sst", "*.log"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if err := os.Truncate(path, 10); err != nil {
				t.Fatal(err)
			}
		}
	}
	lists, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(lists) != 1 || os.Truncate(lists[0], 20) != nil {
		t.Fatal(lists, err)
	}
	if _, _, err := salvaged(t, dir); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("it says %v", err)
	}
}

// A bad block of a large value is found without a search for the bit, which would take
// most of a minute in each read.
func TestLargeBlocksAreBounded(t *testing.T) {
	dir := t.TempDir()
	d := written(t, dir, 60)
	value := bytes.Repeat([]byte("large"), 200_000)
	load := d.Load()
	if err := errors.Join(load.Set([]byte("large"), value), load.Flush(), d.Compact(t.Context(), nil)); err != nil {
		t.Fatal(err)
	}
	if err := d.Examine(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids, err := tables{d}.Tables()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	path := ""
	for _, id := range ids {
		b, err := os.ReadFile(tableFile(dir, id))
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, value); at >= 0 {
			path = tableFile(dir, id)
			b[at+500_000] ^= 4
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if path == "" {
		t.Fatal("the value is in no table")
	}
	opened, err := Engine{}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for range 20 {
		if _, err := opened.Begin().Get([]byte("large"), func([]byte) error { return nil }); !errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), "does not hold") {
			t.Fatalf("a read: %v", err)
		}
	}
	if err := opened.(*db).Examine(t.Context()); !errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(path)) || !strings.Contains(err.Error(), "does not hold") {
		t.Errorf("reading the tables: %v", err)
	}
}
