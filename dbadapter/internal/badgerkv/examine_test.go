package badgerkv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/examiner"
)

// filled opens a database in a folder, and brings some entries into a table.
func filled(t *testing.T, dir string) *db {
	t.Helper()
	d := opened(t, dir)
	txn := d.Begin()
	for i := range 4000 {
		if err := txn.Set(fmt.Appendf(nil, "key %d", i), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if err := txn.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil { // Badger flushes
		t.Fatal(err)
	}
	return opened(t, dir)
}

func opened(t *testing.T, dir string) *db {
	t.Helper()
	if err := (Engine{}).Probe(dir, false, true); err != nil {
		t.Fatal(err)
	}
	d, err := Engine{}.open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// What was read through once is not read again when the store is opened, unless it was
// changed since; what goes bad without a trace is found when the tables are examined.
func TestExamine(t *testing.T) {
	dir := t.TempDir()
	d := filled(t, dir)
	tables := d.badger.Tables()
	if len(tables) == 0 || len(examiner.Load(dir)) != len(tables) {
		t.Fatalf("%d of %d tables are noted after an opening", len(examiner.Load(dir)), len(tables))
	}
	if err := errors.Join(d.Examine(t.Context()), d.Close()); err != nil {
		t.Fatal(err)
	}
	path := tableFile(dir, tables[0].ID)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[100] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := (Engine{}).Probe(dir, true, true); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Fatalf("a table that was changed and is damaged gives %v, want ErrCorrupt", err)
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	d = opened(t, dir)
	err = d.Examine(t.Context())
	if !errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(path)) {
		t.Errorf("a block that went bad gives %v, want ErrCorrupt and the name of the table", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (Engine{}).Probe(dir, true, true); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("once it is known, the opening gives %v, want ErrCorrupt", err)
	}
}
