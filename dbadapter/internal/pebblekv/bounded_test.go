package pebblekv

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// A bad block of a large value is found without a search for the bit, which would take
// most of a minute in each read.
func TestLargeBlocksAreBounded(t *testing.T) {
	dir := t.TempDir()
	d := written(t, dir, 60)
	value := bytes.Repeat([]byte("large"), 200_000)
	txn := d.Begin()
	defer txn.Discard()
	if err := errors.Join(txn.Set([]byte("large"), value), txn.Commit(), d.Compact(t.Context(), nil)); err != nil {
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
	v := opened.View()
	defer v.Close()
	for range 20 {
		if _, err := v.Get([]byte("large"), func([]byte) error { return nil }); !errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), "does not hold") {
			t.Fatalf("a read: %v", err)
		}
	}
	if err := opened.(*db).Examine(t.Context()); !errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(path)) || !strings.Contains(err.Error(), "does not hold") {
		t.Errorf("reading the tables: %v", err)
	}
}
