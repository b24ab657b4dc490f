package peer_test

import (
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// numbered yields n items, through one buffer that it uses again and again.
func numbered(n int) iter.Seq2[peer.Item, error] {
	return func(yield func(peer.Item, error) bool) {
		var key, value []byte
		for i := range n {
			key, value = fmt.Appendf(key[:0], "key %d", i), fmt.Appendf(value[:0], "value %d", i)
			if !yield(peer.Item{Key: key, Value: value}, nil) {
				return
			}
		}
	}
}

func TestImport(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{Unsigned: true})
	r, err := ns.Import(t.Context(), numbered(5000))
	if err != nil || r != (peer.ImportResult{Items: 5000, Written: 5000}) {
		t.Fatalf("%+v, %v", r, err)
	}
	before := ns.Info().Digest
	if r, err = ns.Import(t.Context(), numbered(5000)); err != nil || r != (peer.ImportResult{Items: 5000, Unchanged: 5000}) {
		t.Errorf("again: %+v, %v", r, err)
	}
	if ns.Info().Digest != before {
		t.Error("an import of the same has changed something")
	}
	rec, err := ns.Get(t.Context(), []byte("key 77"))
	if err != nil || string(rec.Value) != "value 77" {
		t.Errorf("%q, %v", rec.Value, err)
	}
	k := []byte("k")
	r, err = ns.Import(t.Context(), items(
		peer.Item{Key: k, Value: []byte("1")},
		peer.Item{Key: k, Value: []byte("1")},
		peer.Item{Key: k, Value: []byte("2")},
		peer.Item{Key: k, Deleted: true},
		peer.Item{Key: k, Deleted: true},
		peer.Item{Key: []byte("never there"), Deleted: true},
	))
	if err != nil || r != (peer.ImportResult{Items: 6, Written: 3, Unchanged: 3}) {
		t.Errorf("one key many times: %+v, %v", r, err)
	}
	if _, err := ns.Get(t.Context(), k); !errors.Is(err, peer.ErrDeleted) {
		t.Errorf("%v", err)
	}
}

// A store counts a key twice, and so does a batch of an import.
func TestImportOfLongKeys(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{Unsigned: true})
	const all = 2000
	r, err := ns.Import(t.Context(), func(yield func(peer.Item, error) bool) {
		for i := range all {
			if !yield(peer.Item{Key: fmt.Appendf(nil, "%0*d", dbadapter.MaxKey, i)}, nil) {
				return
			}
		}
	})
	if err != nil || r.Written != all {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestImportStopsAtTheFault(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{Unsigned: true})
	fault := errors.New("line 4001: not JSON")
	broken := func(yield func(peer.Item, error) bool) {
		for item := range numbered(4000) {
			if !yield(item, nil) {
				return
			}
		}
		yield(peer.Item{}, fault)
	}
	r, err := ns.Import(t.Context(), broken)
	if !errors.Is(err, fault) || r.Items != 4000 || r.Written != 4000 || ns.Info().Records != 4000 {
		t.Errorf("%+v, %v; %d records", r, err, ns.Info().Records)
	}
	late := time.Now().Add(time.Hour)
	for name, bad := range map[string]struct {
		item peer.Item
		want error
	}{
		"empty key":     {peer.Item{}, peer.ErrLimit},
		"long key":      {peer.Item{Key: make([]byte, dbadapter.MaxKey+1)}, peer.ErrLimit},
		"full grave":    {peer.Item{Key: []byte("k"), Value: []byte("v"), Deleted: true}, peer.ErrLimit},
		"in the future": {peer.Item{Key: []byte("k"), Time: late}, peer.ErrFutureVersion},
		"very far":      {peer.Item{Key: []byte("k"), Time: late.AddDate(20000, 0, 0)}, peer.ErrFutureVersion},
		"before 2020":   {peer.Item{Key: []byte("k"), Time: time.Date(2019, 12, 31, 23, 59, 59, 0, time.UTC)}, peer.ErrFutureVersion},
		"before 1970":   {peer.Item{Key: []byte("k"), Time: time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)}, peer.ErrFutureVersion},
	} {
		r, err := ns.Import(t.Context(), items(peer.Item{Key: []byte("good")}, bad.item, peer.Item{Key: []byte("beyond")}))
		if !errors.Is(err, bad.want) || r.Items != 1 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if _, err := ns.Get(t.Context(), []byte("beyond")); !errors.Is(err, peer.ErrNotFound) {
			t.Errorf("%s: the item beyond the fault: %v", name, err)
		}
	}
}

// Two sites import the same dated data and hold the same records: nothing is
// to be exchanged. A third takes them from either, signed by the importer.
func TestDatedImports(t *testing.T) {
	na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	day := time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.FixedZone("", 3600))
	data := func() iter.Seq2[peer.Item, error] {
		return func(yield func(peer.Item, error) bool) {
			for item := range numbered(500) {
				item.Time = day
				if !yield(item, nil) {
					return
				}
			}
		}
	}
	for _, ns := range []*peer.Namespace{sa, sb} {
		if r, err := ns.Import(t.Context(), data()); err != nil || r.Written != 500 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if r := sync1(t, sb, na.ID()); r.Method != wire.MethodSame || r.RecordBytes != 0 {
		t.Errorf("after the same import: %+v", r)
	}
	equal(t, sa, sb)
	nc := open(t, peer.Config{})
	sc := join(t, sa, nc, peer.RoleWrite)
	sync1(t, sc, na.ID())
	equal(t, sa, sc)

	k := []byte("key 1")
	r, err := sa.Import(t.Context(), items(
		peer.Item{Key: k, Value: []byte("older"), Time: day.Add(-time.Hour)},
		peer.Item{Key: k, Value: []byte("value 1"), Time: day.Add(-time.Hour)},
		peer.Item{Key: k, Value: []byte("value 1"), Time: day},
		peer.Item{Key: k, Value: []byte("value 1"), Time: day.Add(time.Hour)},
		peer.Item{Key: k, Time: day.Add(2 * time.Hour), Deleted: true},
		peer.Item{Key: []byte("never there"), Time: day, Deleted: true},
	))
	if err != nil || r != (peer.ImportResult{Items: 6, Written: 3, Unchanged: 2, Stale: 1, Earliest: r.Earliest}) || !r.Earliest.Equal(day.Add(-time.Hour).Truncate(time.Millisecond)) {
		t.Errorf("%+v, %v", r, err)
	}
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
	// A mismatch of equal contents adopts the newer version.
	v := put(t, sb, "key 2", "value 2")
	sync1(t, sa, nb.ID())
	if rec, err := sa.Get(t.Context(), []byte("key 2")); err != nil || rec.Version != v {
		t.Errorf("%v, %v", rec.Version, err)
	}
}

// A write after a dated import wins over it, though the date lies ahead.
func TestWriteAfterImportFromTheFuture(t *testing.T) {
	clock := newTestClock()
	n := open(t, peer.Config{Clock: clock.now})
	ns := create(t, n, peer.Policy{})
	k := []byte("k")
	must(t, errOf(ns.Import(t.Context(), items(peer.Item{Key: k, Value: []byte("dated"), Time: clock.now().Add(4 * time.Minute)}))))
	must(t, ns.Batch(t.Context(), func(b *peer.Batch) error { b.Put(k, []byte("written")); return nil }))
	if rec, err := ns.Get(t.Context(), k); err != nil || string(rec.Value) != "written" {
		t.Errorf("%q, %v", rec.Value, err)
	}
}
