package replica

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile"
)

// recomputed is the kept state as a scan of the store gives it.
func recomputed(t *testing.T, s *side) *Live {
	t.Helper()
	snap, err := s.ns.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	k := New(s.keys)
	if err := k.Load(context.Background(), snap, nil); err != nil {
		t.Fatal(err)
	}
	return k
}

// The kept state equals a recomputation after any writes, and an open view
// goes on answering as of its moment.
func TestKeptFollowsEachWrite(t *testing.T) {
	rng := seeded(t, 21)
	s := newSide(t)
	type moment struct {
		view  *Snapshot
		cells []rateless.Cell
		kept  *Live
	}
	var moments []moment
	for n := range 400 {
		r := record(fmt.Sprint(rng.IntN(50)), fmt.Sprint(n), at(time.Duration(rng.IntN(n+1))*time.Second))
		if r.Deleted = rng.IntN(5) == 0; r.Deleted {
			r.Value = nil
		}
		s.put(r)
		if n%40 == 0 {
			k := recomputed(t, s)
			moments = append(moments, moment{s.snapshot(), k.sketch.Prefix(k.sketch.Len()), k})
		}
	}
	k := recomputed(t, s)
	if k.digest != s.live.digest || k.records != s.live.records || k.seq != s.live.seq {
		t.Errorf("kept %v %d %d, recomputed %v %d %d", s.live.digest, s.live.records, s.live.seq, k.digest, k.records, k.seq)
	}
	if !reflect.DeepEqual(k.sketch.Prefix(k.sketch.Len()), s.live.sketch.Prefix(s.live.sketch.Len())) {
		t.Error("the kept sketch has drifted")
	}
	for i, m := range moments {
		if m.view.Digest() != m.kept.digest || m.view.Records() != m.kept.records {
			t.Errorf("view %d: digest or number are not those of its moment", i)
		}
		kept := m.kept.sketch.Len()
		for _, span := range [][2]int{{0, 64}, {100, 1000}, {kept - 10, kept + 500}, {kept + 500, kept + 900}, {kept, kept + 5}} {
			got, err := m.view.Cells(span[0], span[1])
			if err != nil {
				t.Fatal(err)
			}
			want := rateless.NewWindow(s.keys.Cells, span[0], span[1])
			for p, err := range m.view.store.Pairs(context.Background()) {
				if err != nil {
					t.Fatal(err)
				}
				want.Add(coded.Pair(p.Index, p.Checksum))
			}
			cells, err := want.Cells(span[0], span[1])
			if err != nil || !reflect.DeepEqual(got, cells) {
				t.Errorf("view %d: cells %v are not those of its moment (%v)", i, span, err)
			}
		}
		m.view.Close()
		m.view.Close()
	}
	if len(s.live.snapshots) != 0 || len(s.live.undo) != 0 {
		t.Error("closed views are still paid for")
	}
}

// A view that more changes have passed than are remembered says so.
func TestViewPassedByTooManyChanges(t *testing.T) {
	s := newSide(t)
	s.put(record("k", "", at(0)))
	v := s.snapshot()
	defer v.Close()
	changes := make([]dbadapter.Change, maxUndo+1)
	_, _, seq := s.live.State()
	for i := range changes {
		changes[i] = dbadapter.Change{Seq: seq + 1 + uint64(i), Index: 5, Old: 7, New: 7}
	}
	s.live.Observe(changes)
	if _, err := v.Cells(0, 10); !errors.Is(err, reconcile.ErrBusy) {
		t.Errorf("cells of a moment that is forgotten: %v", err)
	}
	v.Close()
	s.put(record("k", "newer", at(time.Hour)))
	if len(s.live.undo) != 0 {
		t.Error("changes are remembered for nobody")
	}
}

// Growing the sketch beside commits gives what a recomputation gives.
func TestGrow(t *testing.T) {
	s := newSide(t)
	for i := range 1000 {
		s.put(record(fmt.Sprint(i), "", at(0)))
	}
	s.live.records += 1 << 18 // as if there were many
	defer func() { s.live.records -= 1 << 18 }()
	during := writingSnapshots{s.ns, func() { s.put(record("k1", "during", at(time.Hour)), record("1", "during", at(time.Hour))) }}
	grown, err := s.live.Grow(context.Background(), during, nil)
	if err != nil || !grown || s.live.Cells() != liveCells(1<<18) {
		t.Fatal(grown, err, s.live.Cells())
	}
	want := rateless.NewSketch(s.keys.Cells, s.live.Cells())
	snap, err := s.ns.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for p := range snap.Pairs(context.Background()) {
		want.Add(coded.Pair(p.Index, p.Checksum))
	}
	if !reflect.DeepEqual(want.Prefix(want.Len()), s.live.sketch.Prefix(want.Len())) {
		t.Error("the grown sketch is not that of the set")
	}
	if !reflect.DeepEqual(want.Estimator(), s.live.sketch.Estimator()) {
		t.Error("the grown sketch has other probes")
	}
	if grown, err := s.live.Grow(context.Background(), s.ns, nil); grown || err != nil {
		t.Error("grown twice", err)
	}
}

// writingSnapshots is a namespace in which somebody writes right after each
// snapshot.
type writingSnapshots struct {
	dbadapter.Namespace
	write func()
}

func (w writingSnapshots) Snapshot() (dbadapter.Snapshot, error) {
	snap, err := w.Namespace.Snapshot()
	w.write()
	return snap, err
}

// laggingSnapshots is a namespace whose snapshots the test chooses.
type laggingSnapshots struct {
	dbadapter.Namespace
	next func() (dbadapter.Snapshot, error)
}

func (l laggingSnapshots) Snapshot() (dbadapter.Snapshot, error) { return l.next() }

// A store whose snapshots lag behind its observers breaks its contract; a snapshot
// must then fail rather than mix two moments.
func TestSnapshotOfALaggingStore(t *testing.T) {
	s := newSide(t)
	s.put(record("c0", "", at(0)))
	old, err := s.ns.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s.put(record("c1", "", at(0)))
	_, err = s.live.Snapshot(t.Context(), laggingSnapshots{s.ns, func() (dbadapter.Snapshot, error) {
		s.put(record("c2", "", at(0)))
		return old, nil
	}}, nil)
	if !errors.Is(err, reconcile.ErrBusy) {
		t.Fatalf("a snapshot from before the snapshot was begun: %v", err)
	}
	if old, err = s.ns.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.put(record("c3", "", at(0)))
	v, err := s.live.Snapshot(t.Context(), laggingSnapshots{s.ns, func() (dbadapter.Snapshot, error) { return old, nil }}, nil)
	if err != nil {
		if !errors.Is(err, reconcile.ErrBusy) {
			t.Fatal(err)
		}
		old.Close()
		return
	}
	defer v.Close()
	var want dbadapter.Digest
	for r, err := range v.All() {
		if err != nil {
			t.Fatal(err)
		}
		want = want.Add(s.keys.Hasher.Digest(&r))
	}
	if v.Digest() != want {
		t.Error("the snapshot's digest is not that of its records")
	}
}
