package badgerkv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// put commits a value under many keys in one transaction.
func put(t *testing.T, d *db, keys int, value string) {
	t.Helper()
	txn := d.Begin()
	defer txn.Discard()
	for i := range keys {
		if err := txn.Set(fmt.Appendf(nil, "key %06d", i), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := txn.Commit(); err != nil {
		t.Fatal(err)
	}
}

// counts says how many of the keys hold which value.
func counts(t *testing.T, v kv.Reader, keys int) map[string]int {
	t.Helper()
	held := map[string]int{}
	for i := range keys {
		value, err := kv.Get(v, fmt.Appendf(nil, "key %06d", i))
		if err != nil {
			t.Fatal(err)
		}
		held[string(value)]++
	}
	return held
}

// TestLargeCommitIsWhole: of a commit that goes past Badger's transactions, nothing is
// there where its log ends before the mark of its end, and all of it where that is there.
func TestLargeCommitIsWhole(t *testing.T) {
	const keys = largeCommit + 500
	dir := t.TempDir()
	d, err := Engine{}.open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	put(t, d, keys, "old")
	logs, err := logsIn(dir)
	if err != nil || len(logs) != 1 {
		t.Fatalf("the logs are %v, %v", logs, err)
	}
	whole := func() (log []byte, end int) {
		log, err := os.ReadFile(logs[0])
		if err != nil {
			t.Fatal(err)
		}
		for end = logHeader; ; {
			e, err := readLogged(log, end)
			if err != nil {
				return log, end
			}
			end = e.end
		}
	}
	_, first := whole()
	put(t, d, keys, "new")
	log, last := whole()
	if last <= first {
		t.Fatalf("the second commit is not in the log: it ends at %d", last)
	}
	for _, end := range []int{first, first + 1, first + (last-first)/2, last - 1, last} {
		other := t.TempDir()
		if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		cut := append([]byte(nil), log...)
		clear(cut[end:])
		if err := os.WriteFile(filepath.Join(other, filepath.Base(logs[0])), cut, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := Engine{}.open(other, false)
		if err != nil {
			t.Fatal(err)
		}
		want := "old"
		if end == last {
			want = "new"
		}
		v := again.View()
		if got := counts(t, v, keys); got[want] != keys {
			t.Errorf("cut at %d of %d to %d: the keys hold %v, and not %q", end, first, last, got, want)
		}
		v.Close()
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefusedCommit: a commit that Badger refuses is an error, of any size.
func TestRefusedCommit(t *testing.T) {
	for _, keys := range []int{1, 10, largeCommit - 1, largeCommit, largeCommit + 500} {
		d, err := Engine{}.open(t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		txn := d.Begin()
		for i := range keys {
			if err := txn.Set(fmt.Appendf(nil, "key %06d", i), []byte("value")); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if err := txn.Commit(); err == nil {
			t.Errorf("a commit of %d entries to a closed database is acknowledged", keys)
		}
		txn.Discard()
	}
}

// TestViewsStay: a view sees what it saw, whatever is committed and merged meanwhile.
func TestViewsStay(t *testing.T) {
	const keys = 3000
	d, err := Engine{NoSync: true}.open(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	put(t, d, keys, "old")
	before := d.View()
	defer before.Close()
	put(t, d, keys, "new")
	after := d.View()
	defer after.Close()
	for range 2 { // a second run merges what the first has only flushed
		if err := d.Compact(context.Background(), single{d, func() {}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := counts(t, before, keys); got["old"] != keys {
		t.Errorf("the first view sees %v", got)
	}
	if got := counts(t, after, keys); got["new"] != keys {
		t.Errorf("the second view sees %v", got)
	}
}

// TestTooBig: a transaction refuses what does not fit before it is committed.
func TestTooBig(t *testing.T) {
	d, err := Engine{NoSync: true}.open(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, value := range map[string][]byte{"bytes": make([]byte, 1<<19), "entries": {1}} {
		txn := d.Begin()
		set := 0
		for err == nil {
			err = txn.Set(fmt.Appendf(nil, "key %06d", set), value)
			set++
		}
		if !errors.Is(err, kv.ErrTooBig) {
			t.Fatalf("%s: %v", name, err)
		}
		if err = txn.Commit(); err != nil {
			t.Errorf("%s: what fits is refused: %v", name, err)
		}
		txn.Discard()
		v := d.View()
		if got := counts(t, v, set); got[string(value)] != set-1 {
			t.Errorf("%s: of %d entries there are %d", name, set-1, got[string(value)])
		}
		v.Close()
	}
}
