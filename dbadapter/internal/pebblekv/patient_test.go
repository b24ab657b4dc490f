package pebblekv

import (
	"bytes"
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

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// refuser refuses operations of some kinds on files of some name while it is on.
type refuser struct {
	mu    sync.Mutex // guards what follows
	on    bool
	errno error
	hits  int
	named string
	kinds []errorfs.OpKind
	hit   chan struct{}
}

func (r *refuser) String() string { return "refuser" }

func (r *refuser) MaybeError(op errorfs.Op) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.on || !strings.Contains(filepath.Base(op.Path), r.named) {
		return nil
	}
	for _, kind := range r.kinds {
		if kind == op.Kind {
			if r.hits++; r.hits == 1 {
				close(r.hit)
			}
			return &os.PathError{Op: "refused", Path: op.Path, Err: r.errno}
		}
	}
	return nil
}

func (r *refuser) turn(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = on
}

// TestRefused: of what the system refuses, with each errno, nothing is taken for damage, and
// all goes on by itself once it is granted. A sync that fails ends the database with a named
// error, and what was acknowledged is on the disk.
func TestRefused(t *testing.T) {
	syncs := []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
	for name, files := range map[string]struct {
		named string
		kinds []errorfs.OpKind
		ends  bool // the database
		read  bool // it is a read that meets it
	}{
		"make a log":         {".log", []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite}, false, false},
		"write a log":        {".log", []errorfs.OpKind{errorfs.OpFileWrite}, false, false},
		"sync a log":         {".log", syncs, true, false},
		"make a table":       {".sst", []errorfs.OpKind{errorfs.OpCreate}, false, false},
		"write a table":      {".sst", []errorfs.OpKind{errorfs.OpFileWrite}, false, false},
		"sync a table":       {".sst", syncs, false, false},
		"open a table":       {".sst", []errorfs.OpKind{errorfs.OpOpen}, false, true},
		"write the list":     {"MANIFEST", []errorfs.OpKind{errorfs.OpFileWrite}, false, false},
		"sync the list":      {"MANIFEST", syncs, true, false},
		"sync the folder":    {"store", syncs, true, false},
		"make or rename any": {"", []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpRename}, false, false},
	} {
		for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EIO, syscall.ENOSPC} {
			t.Run(name+"/"+errno.Error(), func(t *testing.T) {
				t.Parallel()
				testRefused(t, &refuser{named: files.named, kinds: files.kinds, errno: errno, hit: make(chan struct{})}, files.ends, files.read)
			})
		}
	}
}

func testRefused(t *testing.T, r *refuser, ends, read bool) {
	dir := filepath.Join(t.TempDir(), "store")
	var log bytes.Buffer
	failed := make(chan error, 100)
	engine := Engine{
		pause: time.Millisecond, files: errorfs.Wrap(vfs.Default, r), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Damaged: func(err error) { t.Errorf("said to be damaged: %v", err) },
		Failed:  func(err error) { failed <- err },
	}
	open := func(dir string) *db {
		opened, err := engine.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return opened.(*db)
	}
	d := open(dir)
	acknowledged := 0
	commit := func() error {
		txn := d.Begin()
		defer txn.Discard()
		if err := errors.Join(txn.Set(fmt.Appendf(nil, "key %d", acknowledged), []byte("value")), txn.Commit()); err != nil {
			return err
		}
		acknowledged++
		return nil
	}
	write := func() error { return errors.Join(commit(), d.Compact(t.Context(), nil)) }
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	if read { // of a table that is not open
		if err := errors.Join(write(), d.Close()); err != nil {
			t.Fatal(err)
		}
		r.turn(true) // before the work in the background opens it
		d = open(dir)
	}
	r.turn(true)
	done := make(chan error, 1)
	go func() {
		if read {
			view := d.View()
			_, err := kv.Get(view, []byte("key 0"))
			view.Close()
			done <- err
			return
		}
		done <- errors.Join(write(), write())
	}()
	wait := func(what string, c <-chan error) error {
		select {
		case err := <-c:
			return err
		case <-t.Context().Done():
			t.Fatalf("%s: %s", what, &log)
		}
		return nil
	}
	select {
	case <-r.hit:
	case err := <-done:
		done <- err
		if r.turn(true); r.hits == 0 {
			t.Fatalf("nothing was refused: %v", err)
		}
	}
	if ends {
		if err := wait("it is not told to have failed", failed); !errors.Is(err, r.errno) {
			t.Errorf("it failed of %v", err)
		}
		// The process ends here; what it leaves is opened in another place.
		other := t.TempDir()
		if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		r.turn(false)
		d = open(other)
	} else {
		if !read {
			r.turn(false)
		}
		if err := wait("it does not go on", done); read != errors.Is(err, r.errno) || !read && err != nil || errors.Is(err, dbadapter.ErrCorrupt) {
			t.Error(err)
		}
		r.turn(false)
		if err := write(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		d = open(dir)
	}
	view := d.View()
	for i := range acknowledged {
		if value, err := kv.Get(view, fmt.Appendf(nil, "key %d", i)); err != nil || string(value) != "value" {
			t.Errorf("record %d of %d: %q, %v", i, acknowledged, value, err)
		}
	}
	view.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if lines := strings.Count(log.String(), "\n"); lines > 200 || strings.Contains(log.String(), "damage") {
		t.Errorf("%d lines of log: %.2000s", lines, &log)
	}
}
