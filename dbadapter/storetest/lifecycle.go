package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

func testApart(t *testing.T, h Harness) {
	e := newEnv(t, h)
	other := e.neighbour(2, dbadapter.NewHasher(dbadapter.Secret{9}))
	for i, n := range []*env{e, other} {
		for j, key := range oddKeys {
			n.apply(put(key, fmt.Sprint(i, j), at(i*100+j)))
		}
	}
	e.check()
	other.check()
	if _, err := e.store.Namespace(t.Context(), e.id, e.hasher, nil); !errors.Is(err, dbadapter.ErrLocked) {
		t.Errorf("a namespace opened twice gives %v, want ErrLocked", err)
	}
	// Closed and opened again while the store stays open.
	if err := errors.Join(e.namespace.Close(), e.namespace.Close()); err != nil {
		t.Fatal(err)
	}
	e.open()
	e.check()
	other.check()
}

func testDrop(t *testing.T, h Harness) {
	e := newEnv(t, h)
	ctx := context.Background()
	stays := e.neighbour(2, e.hasher)
	for _, n := range []*env{e, stays} {
		var writes []write
		for i := range 3000 {
			writes = append(writes, put(fmt.Sprint(i), "v", at(i)))
		}
		n.apply(writes...)
		n.apply(take(dbadapter.SetAside, writes[0].Record))
	}
	if err := e.store.Drop(ctx, e.id); !errors.Is(err, dbadapter.ErrLocked) {
		t.Errorf("dropping an open namespace gives %v, want ErrLocked", err)
	}
	e.namespace.Close()
	if err := e.store.Drop(ctx, e.id); err != nil {
		t.Fatal(err)
	}
	if err := e.store.Drop(ctx, dbadapter.NamespaceID{5}); err != nil {
		t.Errorf("dropping a namespace that never was gives %v", err)
	}
	e.begin(1)
	e.check() // Seq, Latest and the logs begin anew
	stays.check()
	e.apply(put("k", "v", at(1)))
	e.check()
	e.reopen()
	e.check()
	stays.store = e.store
	stays.open()
	stays.check()
}

func testClosed(t *testing.T, h Harness) {
	e := newEnv(t, h)
	ctx := context.Background()
	e.apply(put("k", "v", at(1)))
	closed := e.snapshot()
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		t.Errorf("closing a snapshot twice gives %v", err)
	}
	open := e.snapshot()
	e.snapshotIsClosed("closed snapshot", closed)
	e.namespace.Close()
	e.snapshotIsClosed("snapshot of a closed namespace", open)
	e.namespaceIsClosed("closed namespace")
	e.open()
	open = e.snapshot()
	if err := errors.Join(e.store.Close(), e.store.Close()); err != nil {
		t.Errorf("closing a store twice gives %v", err)
	}
	e.snapshotIsClosed("snapshot of a closed store", open)
	e.namespaceIsClosed("namespace of a closed store")
	if _, err := e.store.Namespace(ctx, e.id, e.hasher, nil); !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("opening a namespace of a closed store gives %v, want ErrClosed", err)
	}
	if err := e.store.Drop(ctx, dbadapter.NamespaceID{7}); !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("dropping a namespace of a closed store gives %v, want ErrClosed", err)
	}
	if err := e.store.Compact(ctx); !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("compacting a closed store gives %v, want ErrClosed", err)
	}
	if err := errors.Join(open.Close(), e.namespace.Close()); err != nil {
		t.Errorf("closing what went with the store gives %v", err)
	}
}

// snapshotIsClosed calls all methods of a snapshot: each gives ErrClosed.
func (e *env) snapshotIsClosed(what string, s dbadapter.Snapshot) {
	e.Helper()
	_, errGet := s.Get([]byte("k"))
	_, errBucket := s.Bucket(1)
	_, errBuckets := s.Buckets([]dbadapter.Index{1, 2})
	e.allAre(what, dbadapter.ErrClosed, map[string]error{
		"Get": errGet, "Bucket": errBucket, "Buckets": errBuckets, "Lookup": s.Lookup([]dbadapter.Index{1}, make([]dbadapter.Checksum, 1)),
	})
	e.scansGive(context.Background(), what, dbadapter.ErrClosed, s)
}

// scansGive calls the methods of a snapshot that take a context: each gives that error.
func (e *env) scansGive(ctx context.Context, what string, want error, s dbadapter.Snapshot) {
	e.Helper()
	e.allAre(what, want, map[string]error{"Scan": lastError(s.Scan(ctx, nil, nil)), "Pairs": lastError(s.Pairs(ctx, 0, 0))})
}

// namespaceIsClosed calls the methods of the namespace: each gives ErrClosed.
func (e *env) namespaceIsClosed(what string) {
	e.Helper()
	_, err := e.namespace.Snapshot()
	e.allAre(what, dbadapter.ErrClosed, map[string]error{"Snapshot": err})
	e.namespaceGives(context.Background(), what, dbadapter.ErrClosed)
}

// namespaceGives calls the methods of the namespace that take a context: each gives that error.
func (e *env) namespaceGives(ctx context.Context, what string, want error) {
	e.Helper()
	n := e.namespace
	_, errApply := submit(ctx, n, e.hasher, []write{put("k", "w", at(2))})
	_, _, errSummary := n.Summary(ctx)
	e.allAre(what, want, map[string]error{
		"Apply": errApply, "Summary": errSummary, "SaveSummary": n.SaveSummary(ctx, 0, nil),
		"Lower": n.Lower(ctx, 0), "Raise": n.Raise(ctx, at(20).Clock), "Forget": n.Forget(ctx, 1),
		"Changes": lastError(n.Changes(ctx, 0)), "Kept": lastError(n.Kept(ctx)),
	})
}

func (e *env) allAre(what string, want error, errs map[string]error) {
	e.Helper()
	for name, err := range errs {
		if !errors.Is(err, want) {
			e.Errorf("%s: %s gives %v, want %v", what, name, err, want)
		}
	}
}

// testClosedInUse closes the store in the midst of scans and writes: each ends
// with ErrClosed, and an acknowledged write is there afterwards.
func testClosedInUse(t *testing.T, h Harness) {
	e := newEnv(t, h)
	ctx := context.Background()
	for i := range 100 {
		e.apply(put(fmt.Sprint(i), "v", at(i)))
	}
	s := e.snapshot()
	scanning := make(chan struct{})
	resumed := make(chan error)
	go func() {
		seen, err := 0, error(nil)
		for _, err = range s.Scan(ctx, nil, nil) {
			if seen++; seen == 2 {
				close(scanning)
				<-resumed // go on only when the store is closed
			}
		}
		resumed <- err
	}()
	<-scanning
	const writers = 4
	wrote := make(chan []write)
	for w := range writers {
		go func() {
			var mine []write
			for i := 0; ; i++ {
				next := put(fmt.Sprint("w", w, "/", i), "v", at(i))
				if _, err := submit(ctx, e.namespace, e.hasher, []write{next}); err != nil {
					if !errors.Is(err, dbadapter.ErrClosed) {
						t.Errorf("a write to a store that closes gives %v, want ErrClosed", err)
					}
					break
				}
				mine = append(mine, next)
			}
			wrote <- mine
		}()
	}
	if err := e.store.Close(); err != nil {
		t.Fatal(err)
	}
	for range writers {
		e.twin.apply(<-wrote)
	}
	resumed <- nil
	if err := <-resumed; !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("a scan over which the store was closed ends with %v, want ErrClosed", err)
	}
	e.reopen()
	e.checkSet()
}

func testCancelled(t *testing.T, h Harness) {
	e := newEnv(t, h)
	e.apply(put("k", "v", at(1)), put("aside", "v", at(1)))
	e.apply(take(dbadapter.SetAside, put("aside", "v", at(1)).Record))
	other := e.neighbour(2, e.hasher)
	other.apply(put("k", "v", at(1)))
	other.namespace.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	const what = "under a cancelled context"
	_, err := e.store.Namespace(ctx, dbadapter.NamespaceID{8}, e.hasher, nil)
	e.allAre(what, context.Canceled, map[string]error{"Namespace": err, "Drop": e.store.Drop(ctx, other.id)})
	e.namespaceGives(ctx, what, context.Canceled)
	e.scansGive(ctx, what, context.Canceled, e.snapshot())
	e.check()
	other.open()
	other.check()
}

// lastError is with what a sequence ends.
func lastError[T any](seq iter.Seq2[T, error]) (err error) {
	for _, err = range seq {
	}
	return err
}
