package kvstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

func openTest(t *testing.T, dir string, o Options, observe func([]dbadapter.Change)) (*Store, *namespace) {
	t.Helper()
	s, err := openEngine(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	n, err := s.Namespace(context.Background(), dbadapter.NamespaceID{1}, dbadapter.NewHasher(dbadapter.Secret{1}), observe)
	if err != nil {
		t.Fatal(err)
	}
	return s, n.(*namespace)
}

// hashed is a record that is fit to be stored.
func hashed(h dbadapter.Hasher, r dbadapter.Record) dbadapter.Hashed {
	out, err := dbadapter.Hash(h, r)
	if err != nil {
		panic(err)
	}
	return out
}

func write(key string, second int) []dbadapter.Write {
	v := dbadapter.Version{Clock: dbadapter.TimestampAt(time.Unix(1_780_000_000+int64(second), 0)), Writer: 1}
	r := dbadapter.Record{Key: []byte(key), Value: []byte("v"), Version: v}
	return []dbadapter.Write{{Record: hashed(dbadapter.NewHasher(dbadapter.Secret{1}), r)}}
}

// apply applies writes that must not fail.
func apply(t testing.TB, n dbadapter.Namespace, writes []dbadapter.Write) []dbadapter.Outcome {
	t.Helper()
	outcomes, err := n.Apply(t.Context(), writes)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// snapshotOf opens a snapshot for as long as the test runs.
func snapshotOf(t testing.TB, n dbadapter.Namespace) dbadapter.Snapshot {
	t.Helper()
	s, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// blocked opens a namespace whose observer stops the first commit until release
// is called; entered is closed when it does.
func blocked(t *testing.T) (s *Store, n *namespace, entered chan struct{}, release func()) {
	entered, gate := make(chan struct{}), make(chan struct{})
	var once, open sync.Once
	s, n = openTest(t, t.TempDir(), Options{}, func([]dbadapter.Change) {
		once.Do(func() { close(entered) })
		<-gate
	})
	release = func() { open.Do(func() { close(gate) }) }
	t.Cleanup(release)
	return s, n, entered, release
}

// TestGroupCommit queues many batches behind one commit: they go together.
func TestGroupCommit(t *testing.T) {
	s, n, entered, release := blocked(t)
	const callers = 200
	errs := make(chan error, callers+1)
	apply := func(i int) {
		_, err := n.Apply(context.Background(), write(fmt.Sprint(i), i))
		errs <- err
	}
	go apply(0)
	<-entered
	before := s.committer.transactions.Load()
	for i := range callers {
		go apply(i + 1)
	}
	waitFor(t, func() bool { return s.committer.queue.Len() == callers })
	release()
	for range callers + 1 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if got := s.committer.transactions.Load() - before; got != 1 {
		t.Errorf("%d batches that were queued together took %d transactions, want 1", callers, got)
	}
	v := snapshotOf(t, n)
	for i := range callers + 1 {
		if _, err := v.Get([]byte(fmt.Sprint(i))); err != nil {
			t.Errorf("Get %d: %v", i, err)
		}
	}
}

// TestGroupBounds queues more than one transaction takes.
func TestGroupBounds(t *testing.T) {
	s, n, entered, release := blocked(t)
	errs := make(chan error)
	apply := func(i, size int) {
		w := write(fmt.Sprint(i), i)
		r := w[0].Record.Record
		r.Value = make([]byte, size)
		w[0].Record = hashed(n.Hasher, r)
		_, err := n.Apply(context.Background(), w)
		errs <- err
	}
	go apply(0, 1)
	<-entered
	before := s.committer.transactions.Load()
	const callers = 8
	for i := range callers {
		go apply(i+1, dbadapter.MaxBatchBytes/3)
	}
	waitFor(t, func() bool { return s.committer.queue.Len() == callers })
	release()
	for range callers + 1 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if got := s.committer.transactions.Load() - before; got != callers/2 {
		t.Errorf("%d batches of which two fit took %d transactions, want %d", callers, got, callers/2)
	}
}

// TestSnapshotDoesNotWait opens a snapshot while the writer is busy.
func TestSnapshotDoesNotWait(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	entered, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 2)
	go func() {
		done <- s.committer.do(context.Background(), func() error {
			close(entered)
			<-release
			return nil
		})
	}()
	<-entered
	go func() {
		_, err := n.Apply(context.Background(), write("k", 1))
		done <- err
	}()
	v, err := n.Snapshot()
	close(release)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.Get([]byte("k")); !errors.Is(err, dbadapter.ErrNotFound) || v.Seq() != 0 {
		t.Errorf("a snapshot sees a commit that came after it: %v, Seq %d", err, v.Seq())
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestWithdrawn cancels a batch that is queued, and one whose commit has begun.
func TestWithdrawn(t *testing.T) {
	s, n, entered, release := blocked(t)
	began, cancelBegan := context.WithCancel(context.Background())
	waiting, cancelWaiting := context.WithCancel(context.Background())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := n.Apply(began, write("first", 1))
		first <- err
	}()
	<-entered
	go func() {
		_, err := n.Apply(waiting, write("second", 1))
		second <- err
	}()
	waitFor(t, func() bool { return s.committer.queue.Len() == 1 })
	cancelWaiting()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("a batch that was withdrawn gives %v", err)
	}
	cancelBegan()
	select {
	case err := <-first:
		t.Errorf("a batch whose commit has begun was given up with %v: its outcome is unknown", err)
	default:
	}
	release()
	if err := <-first; err != nil {
		t.Errorf("a batch whose commit had begun gives %v", err)
	}
	v := snapshotOf(t, n)
	if _, err := v.Get([]byte("first")); err != nil {
		t.Errorf("the batch whose commit had begun: %v", err)
	}
	if _, err := v.Get([]byte("second")); !errors.Is(err, dbadapter.ErrNotFound) {
		t.Errorf("the batch that was withdrawn: %v", err)
	}
}

func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !what(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen")
		}
	}
}

func TestDiskNearlyFull(t *testing.T) {
	dir := t.TempDir()
	s, _ := openTest(t, dir, Options{}, nil)
	s.Close()
	s, n := openTest(t, dir, tight(t), nil)
	full := func(what string, err error) {
		t.Helper()
		var room *dbadapter.NoRoom
		if !errors.Is(err, dbadapter.ErrLimit) || !errors.As(err, &room) || room.Free >= room.Need || errors.Is(s.Able(t.Context()), dbadapter.ErrNoRoom) != (err != nil) {
			t.Errorf("%s on a full disk gives %v, want ErrNoRoom", what, err)
		}
	}
	_, err := n.Apply(t.Context(), write("k", 1))
	full("a write", err)
	_, err = s.Namespace(t.Context(), dbadapter.NamespaceID{9}, dbadapter.NewHasher(dbadapter.Secret{1}), nil)
	full("a new namespace", err)
	gone := write("k", 1)
	r := gone[0].Record.Record
	r.Deleted, r.Value = true, nil
	gone[0].Record = hashed(dbadapter.NewHasher(dbadapter.Secret{1}), r)
	if o, err := n.Apply(t.Context(), gone); err != nil || o[0].Result != dbadapter.Applied {
		t.Errorf("a deletion gives %v, %v", o, err)
	}
	s.Close()
	s, n = openTest(t, dir, Options{}, nil)
	if _, err := n.Apply(context.Background(), write("k", 2)); err != nil {
		t.Errorf("with room again: %v", err)
	}
	s.Close()
}

// TestClean changes what a clean close noted.
func TestClean(t *testing.T) {
	dir := t.TempDir()
	s, n := openTest(t, dir, Options{}, nil)
	for i := range 3 {
		apply(t, n, write("k", i))
	}
	path := filepath.Join(dir, cleanFile)
	if _, err := os.Stat(path); err == nil {
		t.Error("an open store is marked as closed")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := markClean(dir, s.committer.head.commits+1); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and the next time too
		if _, err := openEngine(dir, Options{}); !errors.Is(err, dbadapter.ErrCorrupt) || !strings.Contains(err.Error(), "restore the folder") {
			t.Errorf("a store that has lost a commit since its clean close gives %v, want ErrCorrupt and what to do", err)
		}
	}
	if err := markClean(dir, s.committer.head.commits); err != nil {
		t.Fatal(err)
	}
	s, _ = openTest(t, dir, Options{}, nil)
	s.Close()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("after a clean close: %v", err)
	}
}

// TestLongValues goes from a value that is cut in two to a short one and back.
func TestLongValues(t *testing.T) {
	dir := t.TempDir()
	s, n := openTest(t, dir, Options{}, nil)
	for i, size := range []int{dbadapter.MaxValue, 10, inline - layout.LeastHead, inline - layout.LeastHead - 1, dbadapter.MaxValue} {
		w := write("k", i)
		r := w[0].Record.Record
		r.Value = make([]byte, size)
		w[0].Record = hashed(n.Hasher, r)
		apply(t, n, w)
		v, err := n.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		r, err = v.Get([]byte("k"))
		if err != nil || len(r.Value) != size {
			t.Errorf("a value of %d bytes reads as %d, %v", size, len(r.Value), err)
		}
		tail, err := kv.Get(v.(*snapshot).read.txn, tailKey(n.Number, []byte("k")))
		if err != nil || (tail != nil) != isLong(&r) {
			t.Errorf("a value of %d bytes has a tail of %d, %v", size, len(tail), err)
		}
		v.Close()
	}
	s.Close()
}
