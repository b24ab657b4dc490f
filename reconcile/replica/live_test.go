package replica

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/rangesum"
	"github.com/syncd-io/syncd/reconcile"
)

// recomputed is the live sketch as a scan of the store gives it.
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

// sameRanges fails unless each range has the same sum in both.
func sameRanges(t *testing.T, got, want *rangesum.Table) {
	t.Helper()
	for r := range dbadapter.Range(dbadapter.Ranges) {
		if g, w := got.Of(r, r+1), want.Of(r, r+1); g != w {
			t.Errorf("range %d has %v, not %v", r, g, w)
		}
	}
	if g, w := got.Total(), got.Of(0, dbadapter.Ranges); g != w {
		t.Errorf("the total is kept as %v, and the ranges add up to %v", g, w)
	}
}

// The live sketch equals a recomputation after any writes and removals, and an open snapshot
// goes on answering as of its moment.
func TestLiveFollowsEachWrite(t *testing.T) {
	rng := seeded(t, 21)
	s := newSide(t)
	type moment struct {
		snap *Snapshot
		want *Live // by a scan
	}
	var moments []moment
	for n := range 400 {
		r := record(fmt.Sprint(rng.IntN(50)), fmt.Sprint(n), at(time.Duration(rng.IntN(n+1))*time.Second))
		if r.Deleted = rng.IntN(5) == 0; r.Deleted {
			r.Value = nil
		}
		s.put(r)
		if n%3 == 0 {
			action := dbadapter.Collect
			if n%2 == 0 {
				action = dbadapter.SetAside
			}
			s.take(action, fmt.Sprint(rng.IntN(50)), fmt.Sprint(rng.IntN(50)))
		}
		if n%40 == 0 {
			k := recomputed(t, s)
			moments = append(moments, moment{s.snapshot(), k})
		}
	}
	removed := 0
	for c, err := range s.ns.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c.New == 0 {
			removed++
		}
	}
	if removed < 40 {
		t.Errorf("only %d buckets were emptied", removed)
	}
	k := recomputed(t, s)
	if k.undo.seq != s.live.undo.seq {
		t.Errorf("live at %d, recomputed at %d", s.live.undo.seq, k.undo.seq)
	}
	sameRanges(t, s.live.ranges, k.ranges)
	if !reflect.DeepEqual(k.sketch.Prefix(k.sketch.Len()), s.live.sketch.Prefix(s.live.sketch.Len())) {
		t.Error("the live sketch has drifted")
	}
	for i, m := range moments {
		sameRanges(t, m.snap.ranges, m.want.ranges)
		if want := m.want.ranges.Total(); m.snap.Sum().Digest != want.Digest || m.snap.Sum().Records != want.Records {
			t.Errorf("snapshot %d: digest or number are not those of its moment", i)
		}
		end := m.want.sketch.Len()
		for _, span := range [][2]int{{0, 64}, {100, 1000}, {end - 10, end + 500}, {end + 500, end + 900}, {end, end + 5}} {
			got, err := m.snap.Cells(span[0], span[1])
			if err != nil {
				t.Fatal(err)
			}
			want := rateless.NewWindow(s.keys.Cells, span[0], span[1])
			for p, err := range m.snap.store.Pairs(context.Background(), 0, 0) {
				if err != nil {
					t.Fatal(err)
				}
				want.Add(coded.Pair(p.Index, p.Checksum))
			}
			cells, err := want.Cells(span[0], span[1])
			if err != nil || !reflect.DeepEqual(got, cells) {
				t.Errorf("snapshot %d: cells %v are not those of its moment (%v)", i, span, err)
			}
		}
		m.snap.Close()
		m.snap.Close()
	}
	if len(s.live.undo.marks) != 0 || s.live.undo.changes != nil {
		t.Error("closed snapshots still take memory")
	}
}

// Growing the sketch beside commits gives what a recomputation gives.
func TestGrow(t *testing.T) {
	s := newSide(t)
	for i := range 1000 {
		s.put(record(fmt.Sprint(i), "", at(0)))
	}
	s.pretend(1 << 18)
	defer s.pretend(-1 << 18)
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
	for p := range snap.Pairs(context.Background(), 0, 0) {
		want.Add(coded.Pair(p.Index, p.Checksum))
	}
	if !reflect.DeepEqual(want.Prefix(want.Len()), s.live.sketch.Prefix(want.Len())) {
		t.Error("the grown sketch is not that of the set")
	}
	if !reflect.DeepEqual(want.Estimator(), s.live.sketch.Estimator()) {
		t.Error("the grown sketch has another estimator")
	}
	if grown, err := s.live.Grow(context.Background(), s.ns, nil); grown || err != nil {
		t.Error("grown twice", err)
	}
}

// writingSnapshots is a namespace that is written to right after each snapshot
// is opened.
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

// A store whose snapshots lag behind its observer breaks its contract: opening a
// replica fails, rather than mix two moments.
func TestSnapshotOfALaggingStore(t *testing.T) {
	s := newSide(t)
	s.put(record("c0", "", at(0)))
	for n, meanwhile := range []bool{true, false} {
		old, err := s.ns.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		s.put(record("c1", "", at(time.Duration(n)*time.Hour)))
		_, err = s.live.Snapshot(t.Context(), laggingSnapshots{s.ns, func() (dbadapter.Snapshot, error) {
			if meanwhile {
				s.put(record("c2", "", at(0)))
			}
			return old, nil
		}}, nil)
		if err == nil || errors.Is(err, reconcile.ErrBusy) || !strings.Contains(err.Error(), "while its observer went from") {
			t.Errorf("written meanwhile %v: %v", meanwhile, err)
		}
		if len(s.live.undo.marks) != 0 {
			t.Error("changes are remembered for a snapshot that was not opened")
		}
	}
}
