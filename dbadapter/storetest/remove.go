package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// testKept looks at the kept log: it is atomic with its commit, and ends with
// Forget or with the namespace.
func testKept(t *testing.T, h Harness) {
	e := newEnv(t, h)
	ctx := context.Background()
	tw := newTwin(e.hasher)
	var writes, gone []write
	for i := range 20 {
		writes = append(writes, put(fmt.Sprint(i), fmt.Sprint("v", i), at(i)))
		gone = append(gone, take(dbadapter.SetAside, writes[i].Record))
	}
	e.apply(writes...)
	tw.apply(writes)

	failing := append(gone[:10:10], given(at(99), put("x", "", at(1))))
	if _, err := submit(ctx, e.namespace, e.hasher, failing); !errors.Is(err, dbadapter.ErrConflict) {
		t.Fatal(err)
	}
	e.check(tw)
	e.apply(gone...)
	tw.apply(gone)
	e.check(tw)
	var first *dbadapter.Kept
	for k, err := range e.namespace.Kept(ctx) { // left early
		if err != nil {
			t.Fatal(err)
		}
		first = &k
		break
	}
	if first == nil || first.Seq != 1 || !first.By.IsZero() || string(first.Record.Value) != "v0" {
		t.Errorf("the first entry is %+v", first)
	}
	forget := func(seqs ...uint64) {
		if err := e.namespace.Forget(ctx, seqs...); err != nil {
			t.Fatal(err)
		}
		tw.forget(seqs)
		e.check(tw)
	}
	forget()
	forget(1, 20, 20, 99)
	e.reopen()
	e.check(tw)
	forget(5)
	e.apply(put("last", "", at(50)), take(dbadapter.SetAside, put("last", "", at(50)).Record))
	tw.apply([]write{put("last", "", at(50)), take(dbadapter.SetAside, put("last", "", at(50)).Record)})
	e.check(tw)

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range e.namespace.Kept(cancelled) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled read of the kept log: %v", err)
		}
	}
	if err := e.namespace.Forget(cancelled, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Forget: %v", err)
	}
	e.namespace.Close()
	if err := e.store.Drop(ctx, e.id); err != nil {
		t.Fatal(err)
	}
	e.observed, e.digest, e.records = nil, dbadapter.Digest{}, 0
	e.openNamespace(1)
	e.check(newTwin(e.hasher))
}

// testRaise: where it is cancelled, or the namespace closed, Raise says so.
func testRaise(t *testing.T, h Harness) {
	e := newEnv(t, h)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.namespace.Raise(cancelled, at(20).Clock); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Raise: %v", err)
	}
	e.namespace.Close()
	if err := e.namespace.Raise(context.Background(), at(20).Clock); !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("a Raise of a closed namespace: %v", err)
	}
}
