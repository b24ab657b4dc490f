package pebblekv

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Of a database whose list of tables, or what leads to it, is damaged nothing is taken, and
// all keys are the gap; one of which Pebble knows nothing is not taken for a new one.
func TestSalvageWithoutList(t *testing.T) {
	dir := t.TempDir()
	d := written(t, dir, 60)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"MANIFEST-*", "marker.manifest.*"} {
		for what, harm := range map[string]func(path string) error{
			"lost": os.Remove,
			"cut":  func(path string) error { return os.Truncate(path, 3) },
			"flipped": func(path string) error {
				b, err := os.ReadFile(path)
				if len(b) > 0 {
					b[len(b)/2] ^= 1
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
			if info, err := os.Stat(files[0]); err != nil || what != "lost" && info.Size() <= 3 {
				continue // a marker says all by its name
			}
			if err := harm(files[0]); err != nil {
				t.Fatal(err)
			}
			taken := 0
			gaps, err := Engine{}.Salvage(t.Context(), to, kv.Salvage{Closed: true, Entry: func(_, _ []byte) error {
				taken++
				return nil
			}})
			if err != nil || taken > 0 || len(gaps) != 1 || !gaps[0].Whole() {
				t.Errorf("%s %s: %d entries are taken, without %v: %v", pattern, what, taken, gaps, err)
			}
		}
	}
}

// A log that is damaged, and followed by another, is read up to there, and all keys are a gap.
func TestSalvageOfALog(t *testing.T) {
	dir := t.TempDir()
	d := written(t, dir, 60)
	failed := d.pebble.Flush()
	for _, entry := range []struct {
		key  string
		size int
	}{{"a", 10}, {"b", 3000}, {"c", 300_000}} { // the last is too long for the log, and begins another
		load := d.Load()
		failed = errors.Join(failed, load.Set([]byte(entry.key), bytes.Repeat([]byte(entry.key), entry.size)), load.Flush())
	}
	if err := errors.Join(failed, d.Close()); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) < 2 {
		t.Fatal(logs, err)
	}
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, bytes.Repeat([]byte("b"), 3000)); at >= 0 {
			b[at+2000] ^= 1
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (Engine{}).Open(dir); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Fatalf("it is opened: %v", err)
	}
	got := map[string]int{}
	gaps, err := Engine{}.Salvage(t.Context(), dir, kv.Salvage{Closed: true, Entry: func(key, value []byte) error {
		got[string(key)] = len(value)
		return nil
	}})
	if err != nil || len(gaps) != 1 || !gaps[0].Whole() || got["a"] != 10 || got["b"]+got["c"] != 0 || len(got) != 61 {
		t.Errorf("%d entries are taken, with %d, %d and %d bytes, without %v: %v", len(got), got["a"], got["b"], got["c"], gaps, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "salvage*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}
