package kvstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/badgerkv"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/pebblekv"
)

// other is the engine that the tests do not run over.
func other() kv.Engine {
	if engine.Name() == badgerkv.Name {
		return pebblekv.Engine{NoSync: true}
	}
	return badgerkv.Engine{NoSync: true}
}

// dump is all entries of a store.
func dump(t testing.TB, s *Store) map[string]string {
	t.Helper()
	view := s.db.View()
	defer view.Close()
	out := map[string]string{}
	_, err := eachEntry(context.Background(), view, func(int64) {}, func(key, value []byte) error {
		out[fmt.Sprintf("%q", key)] = string(value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCopyTo moves a store with a change log, a summary, kept entries, a ceiling, a
// settled backup, a record that is cut in two and a dropped namespace to another
// engine and back: each copy has the same entries, and goes on where it was.
func TestCopyTo(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	fillTest(t, n, 5000)
	aside := write("key 00000007", 7)[0]
	aside.Action = dbadapter.SetAside
	long := write("long", 1)[0]
	long.Record.Value = bytes.Repeat([]byte("v"), dbadapter.MaxValue)
	long.Record = hashed(n.Hasher, long.Record.Record)
	for _, w := range []dbadapter.Write{aside, long} {
		apply(t, n, []dbadapter.Write{w})
	}
	gone := must(s.Namespace(t.Context(), dbadapter.NamespaceID{2}, n.Hasher, nil))
	fillTest(t, gone, 10)
	if err := errors.Join(
		n.SaveSummary(t.Context(), 4000, []byte("summary")), n.Raise(t.Context(), 1<<62),
		gone.Close(), s.Drop(t.Context(), dbadapter.NamespaceID{2}),
	); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { _, marked := left(t, s, 2); return !marked })
	whole, copied := takeCopy(t, s, nil)
	if err := s.Settle(t.Context(), copied.Mark); err != nil {
		t.Fatal(err)
	}
	want := dump(t, s)
	engines := []kv.Engine{other(), engine}
	for _, to := range engines {
		dir := filepath.Join(t.TempDir(), "moved")
		var progress int64
		moved, err := s.CopyTo(t.Context(), dir, to, Options{}, func(n int64) { progress = n })
		if err != nil {
			t.Fatal(err)
		}
		if moved.Entries != uint64(len(want)) || progress != 2*moved.Bytes {
			t.Errorf("%d entries of %d are copied, %d bytes of %d were told", moved.Entries, len(want), progress, 2*moved.Bytes)
		}
		before := n.Meta
		s.Close()
		if s, err = Open(dir, to, Options{}); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := dump(t, s); len(got) != len(want) || difference(got, want) != "" {
			t.Fatal(difference(got, want))
		}
		n = must(s.Namespace(t.Context(), dbadapter.NamespaceID{1}, n.Hasher, nil)).(*namespace)
		if n.Meta != before {
			t.Errorf("the head is %+v, was %+v", n.Meta, before)
		}
		scanAll(t, n)
	}
	// The line of backups goes on, in the store that has moved twice.
	apply(t, n, write("after", 1))
	increment, copied := takeCopy(t, s, copied.Mark)
	if copied.Whole || len(increment) > len(whole)/2 {
		t.Errorf("the next copy is whole: %v, %d bytes after %d", copied.Whole, len(increment), len(whole))
	}
}

// TestCopyToRefuses: a folder that is in use, a store of another engine, a disk
// without room and a source that is damaged.
func TestCopyToRefuses(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	fillTest(t, n, 100)
	if _, err := s.CopyTo(t.Context(), s.dir, other(), Options{}, nil); !errors.Is(err, dbadapter.ErrLocked) {
		t.Errorf("into its own folder: %v", err)
	}
	if _, err := s.CopyTo(t.Context(), filepath.Join(t.TempDir(), "x"), other(), Options{MinFree: 1 << 62}, nil); !errors.Is(err, dbadapter.ErrLimit) {
		t.Errorf("to a full disk: %v", err)
	}
	s.Close()
	if _, err := Open(s.dir, other(), Options{}); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("opened over another engine: %v", err)
	}
	if name, err := EngineOf(s.dir); name != engine.Name() || err != nil {
		t.Errorf("the folder is of %q, %v", name, err)
	}
}

// TestCopyIsCompared harms the copy before it is read back.
func TestCopyIsCompared(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	fillTest(t, n, 100)
	dir := filepath.Join(t.TempDir(), "moved")
	openings := 0
	forgetful := hooked{other(), &hooks{opened: func(db kv.DB) error { // loses an entry before it is read
		if openings++; openings == 1 {
			return nil
		}
		txn := db.Begin()
		defer txn.Discard()
		return errors.Join(txn.Delete(metaKey(0)), txn.Commit())
	}}}
	_, err := s.CopyTo(t.Context(), dir, forgetful, Options{}, nil)
	if !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("a copy that lacks an entry: %v", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
