package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

func testApart(t *testing.T, h Harness) {
	e := newEnv(t, h)
	ctx := context.Background()
	other := &env{TB: t, harness: h, store: e.store, hasher: dbadapter.NewHasher(dbadapter.Secret{9})}
	other.openNamespace(2)
	var twins []*twin
	for i, n := range []*env{e, other} {
		tw := newTwin(n.hasher)
		for j, key := range oddKeys {
			w := put(key, fmt.Sprint(i, j), at(i*100+j))
			n.apply(w)
			tw.apply([]write{w})
		}
		twins = append(twins, tw)
	}
	e.check(twins[0])
	other.check(twins[1])
	if _, err := e.store.Namespace(ctx, e.id, e.hasher, nil); !errors.Is(err, dbadapter.ErrLocked) {
		t.Errorf("a namespace opened twice gives %v, want ErrLocked", err)
	}
	// Closed and opened again while the store stays open.
	if err := errors.Join(e.namespace.Close(), e.namespace.Close()); err != nil {
		t.Fatal(err)
	}
	e.openNamespace(1)
	e.check(twins[0])
	other.check(twins[1])
}

func testDrop(t *testing.T, h Harness) {
	e := newEnv(t, h)
	ctx := context.Background()
	kept := &env{TB: t, harness: h, store: e.store, hasher: e.hasher}
	kept.openNamespace(2)
	tw := newTwin(e.hasher)
	for _, n := range []*env{e, kept} {
		var writes []write
		for i := range 3000 {
			writes = append(writes, put(fmt.Sprint(i), "v", at(i)))
		}
		n.apply(writes...)
		if n == kept {
			tw.apply(writes)
		}
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
	e.observed, e.digest, e.records = nil, dbadapter.Digest{}, 0
	e.openNamespace(1)
	e.check(newTwin(e.hasher)) // Seq, Latest and the log begin anew
	kept.check(tw)
	e.apply(put("k", "v", at(1)))
	e.check(twinOf(e, "k", "v", at(1)))
	e.reopen()
	e.check(twinOf(e, "k", "v", at(1)))
	kept.store = e.store
	n, err := kept.store.Namespace(ctx, kept.id, kept.hasher, kept.observe)
	if err != nil {
		t.Fatal(err)
	}
	kept.namespace = n
	kept.check(tw)
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
	e.openNamespace(1)
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
	errs := map[string]error{"Get": errGet, "Bucket": errBucket, "Buckets": errBuckets, "Lookup": s.Lookup([]dbadapter.Index{1}, make([]dbadapter.Checksum, 1))}
	for _, err := range s.Scan(context.Background(), nil, nil) {
		errs["Scan"] = err
	}
	for _, err := range s.Pairs(context.Background(), 0, 0) {
		errs["Pairs"] = err
	}
	for _, name := range []string{"Get", "Bucket", "Buckets", "Lookup", "Scan", "Pairs"} {
		if err := errs[name]; !errors.Is(err, dbadapter.ErrClosed) {
			e.Errorf("%s: %s gives %v, want ErrClosed", what, name, err)
		}
	}
}

// namespaceIsClosed calls the methods of the namespace: each gives ErrClosed.
func (e *env) namespaceIsClosed(what string) {
	e.Helper()
	ctx := context.Background()
	_, errApply := submit(ctx, e.namespace, e.hasher, []write{put("k", "w", at(2))})
	errLower := errors.Join(e.namespace.Lower(ctx, 0), e.namespace.Raise(ctx, at(9).Clock))
	errForget := e.namespace.Forget(ctx, 1)
	_, errSnapshot := e.namespace.Snapshot()
	var errChanges error
	for _, errChanges = range e.namespace.Changes(ctx, 0) {
		break
	}
	errSave := e.namespace.SaveSummary(ctx, 0, nil)
	_, _, errSummary := e.namespace.Summary(ctx)
	var errKept error
	for _, errKept = range e.namespace.Kept(ctx) {
		break
	}
	for i, err := range []error{errApply, errLower, errForget, errSnapshot, errChanges, errKept, errSave, errSummary} {
		if !errors.Is(err, dbadapter.ErrClosed) {
			e.Errorf("%s: call %d gives %v, want ErrClosed", what, i, err)
		}
	}
}

// testClosedInUse closes the store in the midst of scans and writes: each ends
// with ErrClosed, and an acknowledged write is there afterwards.
func testClosedInUse(t *testing.T, h Harness) {
	e := newEnv(t, h)
	ctx := context.Background()
	tw := newTwin(e.hasher)
	for i := range 100 {
		w := put(fmt.Sprint(i), "v", at(i))
		e.apply(w)
		tw.apply([]write{w})
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
		tw.apply(<-wrote)
	}
	resumed <- nil
	if err := <-resumed; !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("a scan over which the store was closed ends with %v, want ErrClosed", err)
	}
	e.reopen()
	e.check(tw)
}

func testCancelled(t *testing.T, h Harness) {
	e := newEnv(t, h)
	e.apply(put("k", "v", at(1)))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := submit(ctx, e.namespace, e.hasher, []write{put("k", "w", at(2))}); !errors.Is(err, context.Canceled) {
		t.Errorf("Apply under a cancelled context gives %v", err)
	}
	if _, err := e.store.Namespace(ctx, dbadapter.NamespaceID{8}, e.hasher, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Namespace under a cancelled context gives %v", err)
	}
	other := &env{TB: t, harness: h, store: e.store, hasher: e.hasher}
	other.openNamespace(2)
	other.apply(put("k", "v", at(1)))
	other.namespace.Close()
	if err := e.store.Drop(ctx, other.id); !errors.Is(err, context.Canceled) {
		t.Errorf("Drop under a cancelled context gives %v", err)
	}
	other.openNamespace(2)
	other.check(twinOf(other, "k", "v", at(1)))
	s := e.snapshot()
	var err error
	for _, err = range s.Scan(ctx, nil, nil) {
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Scan under a cancelled context gives %v", err)
	}
	for _, err = range s.Pairs(ctx, 0, 0) {
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Pairs under a cancelled context gives %v", err)
	}
	for _, err = range e.namespace.Changes(ctx, 0) {
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Changes under a cancelled context gives %v", err)
	}
	if err := e.namespace.SaveSummary(ctx, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("SaveSummary under a cancelled context gives %v", err)
	}
	if _, _, err := e.namespace.Summary(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Summary under a cancelled context gives %v", err)
	}
	e.check(twinOf(e, "k", "v", at(1)))
}
