package badgerkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// TestRefused: of what Badger's log tells of refusals, that of a table in memory and those
// of the list of tables end the database, with the errno named and no word of damage; the
// others leave it as it is. Whoever would try again behind half a change ends.
func TestRefused(t *testing.T) {
	t.Parallel()
	for line, c := range map[string]struct {
		format, text string
		lost, ends   bool
	}{
		"open a log":             {"Got error: %v for id", "While opening memtable: /a/store/00002.mem err: open /a/store/00002.mem: %s", true, false},
		"map a log":              {"Got error: %v for id", "While opening memtable: /a/store/00002.mem err: while mmapping 00002.mem with size: 67108864 err: %s", true, false},
		"make a table":           {"error flushing memtable to disk: %v, retrying", "error while creating table err: open /a/store/000002.sst: %s", false, false},
		"sync a table":           {"error flushing memtable to disk: %v, retrying", "error while creating table err: msync: %s", false, false},
		"write the list":         {"error flushing memtable to disk: %v, retrying", "write /a/store/MANIFEST: %s", true, true},
		"sync the list":          {"error flushing memtable to disk: %v, retrying", "sync /a/store/MANIFEST: %s", true, true},
		"the list, by a merge":   {"While running doCompact: %v\n", "write /a/store/MANIFEST: %s", true, true},
		"make the list anew":     {"While running doCompact: %v\n", "open /a/store/MANIFEST-REWRITE: %s", true, true},
		"rename the list":        {"While running doCompact: %v\n", "rename /a/store/MANIFEST-REWRITE /a/store/MANIFEST: %s", true, true},
		"one table of a merge":   {"While running doCompact: %v\n", "open /a/store/000007.sst: %s", false, false},
		"what concerns no write": {"while deleting file: %v", "remove /a/store/00001.mem: %s", false, false},
	} {
		for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EIO, syscall.ENOSPC} {
			var log bytes.Buffer
			var told error
			d := &db{tell: func(err error) { told = err }, pause: 1}
			l := logger{slog.New(slog.NewTextHandler(&log, nil)), d}
			returned := false
			var all sync.WaitGroup
			all.Go(func() {
				l.Errorf(c.format, fmt.Sprintf(c.text, errno.Error()))
				returned = true
			})
			all.Wait()
			if lost := d.lost(); (lost != nil) != c.lost || c.lost != errors.Is(told, errno) || errors.Is(lost, dbadapter.ErrCorrupt) || returned == c.ends || !strings.Contains(log.String(), errno.Error()) {
				t.Errorf("%s, %v: lost %v, told %v, returned %v: %s", line, errno, lost, told, returned, &log)
			}
		}
	}
}

// TestNoTableInMemory: where Badger cannot make the log of its next table in memory, that
// is said as it is. Nothing panics, and the next opening finds all that was acknowledged.
func TestNoTableInMemory(t *testing.T) {
	dir := t.TempDir()
	var told error
	d, err := Engine{NoSync: true, Failed: func(err error) { told = err }}.open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	before := d.View()
	logs, err := logsIn(d.dir)
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v, %v", logs, err)
	}
	var number int
	if _, err := fmt.Sscanf(filepath.Base(logs[0]), "%05d.mem", &number); err != nil {
		t.Fatal(err)
	}
	obstacle := filepath.Join(dir, fmt.Sprintf("%05d.mem", number+1))
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for err == nil {
		txn := d.Begin()
		err = errors.Join(txn.Set(fmt.Appendf(nil, "key %d", acknowledged), make([]byte, 1<<19)), txn.Commit())
		txn.Discard()
		if err == nil {
			acknowledged++
		}
	}
	is := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, syscall.EISDIR) || errors.Is(err, dbadapter.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	is("it is told", told)
	_, err = kv.Get(before, []byte("key 0"))
	is("a view from before", err)
	view := d.View()
	_, err = kv.Get(view, []byte("key 0"))
	is("a view", err)
	it := view.Iterate([]byte("key"))
	it.Seek([]byte("key"))
	if it.Valid() {
		t.Error("an iterator goes over what cannot be read")
	}
	is("an iterator", it.Err())
	it.Close()
	view.Close()
	before.Close()
	txn := d.Begin()
	is("the next commit", errors.Join(txn.Set([]byte("key"), nil), txn.Commit()))
	txn.Discard()
	is("a compaction", d.Compact(t.Context(), single{d, func() {}}))
	_, _, err = d.Stale(context.Background(), single{d, func() {}})
	is("a look at what is stale", err)
	d.pages.letGo()
	is("the end", d.Close())

	// The process would end here; what it leaves is opened in another place.
	other := t.TempDir()
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	for logs != nil && t.Context().Err() == nil { // Badger writes the full table still
		if logs, err = logsIn(d.dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if d, err = (Engine{NoSync: true}).open(other, false); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	view = d.View()
	defer view.Close()
	for i := range acknowledged {
		if value, err := kv.Get(view, fmt.Appendf(nil, "key %d", i)); err != nil || len(value) != 1<<19 {
			t.Errorf("record %d of %d: %d bytes, %v", i, acknowledged, len(value), err)
		}
	}
}
