package pebblekv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// written makes a database in a folder, and brings some entries into tables.
func written(t *testing.T, dir string, entries int) *db {
	t.Helper()
	opened, err := Engine{}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	txn := opened.Begin()
	defer txn.Discard()
	for i := range entries {
		if err := txn.Set(fmt.Appendf(nil, "key %06d", i), fmt.Appendf(nil, "%0100d", i)); err != nil {
			t.Fatal(err)
		}
	}
	d := opened.(*db)
	if err := errors.Join(txn.Commit(), d.pebble.Flush()); err != nil {
		t.Fatal(err)
	}
	return d
}

// A byte of a table that is another one is found when the table is read through, whatever
// part of the file it is in: each byte is tried, but one in forty of the first block, for
// which Pebble looks for the bit for milliseconds.
func TestExamineEachByte(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	d := written(t, dir, 16)
	ids, err := tables{d}.Tables()
	if err != nil || len(ids) != 1 {
		t.Fatalf("%d tables, %v", len(ids), err)
	}
	path := tableFile(dir, ids[0])
	if err := d.Examine(t.Context()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	put := func(at int, with byte) {
		if _, err := f.WriteAt([]byte{with}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	for at := 0; at < len(b); at++ {
		if at < len(b)-1000 {
			at += random.IntN(80)
		}
		put(at, b[at]^1<<random.IntN(8))
		if err := (tables{d}).Read(t.Context(), ids[0]); !errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("byte %d of %d is another one: %v", at, len(b), err)
		}
		put(at, b[at])
	}
	if err := d.Examine(t.Context()); err != nil {
		t.Errorf("as it was: %v", err)
	}
}

// A compaction that meets damage says so to the one that is to know, which no call
// returns.
func TestCompactionsTellOfDamage(t *testing.T) {
	dir := t.TempDir()
	d := written(t, dir, 60)
	found := make(chan error, 100)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%d tables, %v", len(paths), err)
	}
	b, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	b[1000] ^= 1
	if err := os.WriteFile(paths[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := Engine{Damaged: func(err error) { found <- err }}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	again := opened.(*db)
	txn := opened.Begin()
	defer txn.Discard()
	if err := errors.Join(txn.Set([]byte("key 000010"), []byte("v")), txn.Commit(), again.pebble.Flush()); err != nil {
		t.Fatal(err)
	}
	if err := again.Compact(t.Context(), nil); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("the compaction: %v", err)
	}
	if err := <-found; !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("it was told of %v", err)
	}
}
