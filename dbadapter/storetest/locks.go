package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// within runs the steps at once and fails, with the stacks of all goroutines, if they
// have not returned after five minutes. They then wait for one another.
func within(t *testing.T, steps ...func() error) {
	t.Helper()
	results := make(chan error, len(steps))
	for _, step := range steps {
		go func() { results <- step() }()
	}
	deadline := time.After(5 * time.Minute)
	for range steps {
		select {
		case err := <-results:
			if err != nil {
				t.Error(err)
			}
		case <-deadline:
			stacks := make([]byte, 1<<20)
			panic(fmt.Sprintf("%s: a deadlock:\n%s", t.Name(), stacks[:runtime.Stack(stacks, true)]))
		}
	}
}

// testLockOrder has a subscriber of commits whose lock the observer takes. It holds
// that lock while it reads and closes snapshots, as reconcile does. A store stops here
// for ever if it closes snapshots under a lock that it also holds while it opens one,
// or while it tells the observer.
func testLockOrder(t *testing.T, h Harness) {
	const rounds = 100
	ctx := context.Background()
	store := h.Open(t, manyChanges)
	var subscriber sync.Mutex
	told := make(chan struct{}, rounds) // a commit is about to take the lock
	n, err := store.Namespace(ctx, dbadapter.NamespaceID{1}, hasher(), func([]dbadapter.Change) {
		told <- struct{}{}
		subscriber.Lock()
		defer subscriber.Unlock()
	})
	if err != nil {
		t.Fatal(err)
	}
	round := func(i int) {
		old, err := n.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		subscriber.Lock()
		steps := []func() error{func() error {
			_, err := submit(ctx, n, hasher(), []write{put(fmt.Sprint(i%20), fmt.Sprint(i), at(i))})
			return err
		}}
		for range 3 {
			steps = append(steps, func() error {
				s, err := n.Snapshot() // waits for the commit, or comes before it
				if err != nil {
					return err
				}
				_, err = recount(ctx, hasher(), s)
				return errors.Join(err, s.Close())
			})
		}
		steps = append(steps, func() error {
			defer subscriber.Unlock()
			<-told
			for range 100 {
				runtime.Gosched() // lets the openings get as far as they can
			}
			_, err := old.Get([]byte("0"))
			if errors.Is(err, dbadapter.ErrNotFound) {
				err = nil
			}
			return errors.Join(err, old.Close())
		})
		within(t, steps...)
	}
	for i := range rounds {
		round(i)
	}
	within(t, n.Close, store.Close)
}

// testPausedScan opens a scan, as an export whose reader has stopped does, and expects
// that it holds up nothing else. Commits go on, and other namespaces are made, dropped
// and made again. The scan's own namespace can be closed and dropped.
func testPausedScan(t *testing.T, h Harness) {
	e := newEnv(t, h)
	ctx := context.Background()
	other := dbadapter.NamespaceID{9}
	dropped := false
	var last error
	e.apply(put("a", "1", at(1)), put("b", "1", at(1)), put("c", "1", at(1)))
	for _, last = range e.snapshot().Scan(ctx, nil, nil) {
		if dropped {
			continue
		}
		dropped = true
		within(t, func() error {
			for i := range 2 {
				n, err := e.store.Namespace(ctx, other, e.hasher, nil)
				if err != nil {
					return fmt.Errorf("make another namespace: %w", err)
				}
				if _, err := submit(ctx, n, e.hasher, []write{put("k", "v", at(i))}); err != nil {
					return fmt.Errorf("write to another namespace: %w", err)
				}
				if err := errors.Join(n.Close(), e.store.Drop(ctx, other)); err != nil {
					return fmt.Errorf("drop another namespace: %w", err)
				}
			}
			if _, err := submit(ctx, e.namespace, e.hasher, []write{put("d", "1", at(1))}); err != nil {
				return fmt.Errorf("write under a scan: %w", err)
			}
			if err := errors.Join(e.namespace.Close(), e.store.Drop(ctx, e.id)); err != nil {
				return fmt.Errorf("drop under a scan: %w", err)
			}
			return nil
		})
	}
	if !errors.Is(last, dbadapter.ErrClosed) {
		t.Errorf("a scan over which its namespace was dropped ends with %v, want ErrClosed", last)
	}
	e.begin(1)
	e.check()
}

// testScanUnderWrites: a scan goes on while its namespace is written to, and sees nothing of
// that.
func testScanUnderWrites(t *testing.T, h Harness) {
	e := newEnvWith(t, h, manyChanges, Weak(hasher(), 3))
	for i := range 250 {
		e.apply(put(fmt.Sprint(i%25), fmt.Sprint(i), at(i)))
	}
	want := e.twin.sorted(nil, nil)
	var got []dbadapter.Record
	for r, err := range e.snapshot().Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		e.apply(put(string(r.Key), "new", at(1000)), put("0"+string(r.Key), "new", at(1000)))
		got = append(got, r.Record)
	}
	if err := same("Scan under writes", got, want); err != nil {
		t.Error(err)
	}
	e.check()
}
