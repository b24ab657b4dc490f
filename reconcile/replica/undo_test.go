package replica

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile"
)

// rewrite commits n times to a few keys.
func (s *side) rewrite(n int) {
	s.t.Helper()
	for i := range n {
		_, _, seq := s.live.State()
		s.put(record(fmt.Sprint("k", i%3), fmt.Sprint(seq), at(time.Duration(seq)*time.Second)))
	}
}

// compareCells fails unless the snapshot's first cells are those of its pairs.
func compareCells(s *Snapshot) error {
	got, err := s.Cells(0, 100)
	if err != nil {
		return err
	}
	want := rateless.NewSketch(s.live.keys.Cells, 100)
	if err := want.AddAll(coded.Pairs(s.store.Pairs(context.Background(), 0, 0))); err != nil {
		return err
	}
	if !slices.Equal(got, want.Prefix(100)) {
		return errors.New("the cells are not those of the snapshot's moment")
	}
	return nil
}

// When the undo log is full, the oldest snapshot is dropped, and says so; the
// others live on.
func TestOldestSnapshotIsDropped(t *testing.T) {
	s := newSide(t)
	s.live.undo.bound = 10
	s.rewrite(5)
	var snaps []*Snapshot
	open := func() {
		snaps = append(snaps, s.snapshot())
		t.Cleanup(func() { snaps[len(snaps)-1].Close() })
	}
	open()
	s.rewrite(4)
	open()
	open() // as old as the one before
	s.rewrite(4)
	open()
	for _, c := range []struct{ writes, dropped int }{{2, 0}, {1, 1}, {3, 1}, {1, 3}, {3, 3}, {1, 4}} {
		s.rewrite(c.writes)
		for n, snap := range snaps {
			if n >= c.dropped {
				if err := compareCells(snap); err != nil {
					t.Errorf("snapshot %d: %v", n, err)
				}
				continue
			}
			_, err := snap.Cells(0, 10)
			if !errors.Is(err, reconcile.ErrBusy) || !strings.Contains(err.Error(), "no more than 10") {
				t.Errorf("snapshot %d is too old: %v", n, err)
			}
		}
		if len(s.live.undo.changes) > s.live.undo.bound {
			t.Errorf("%d changes are held", len(s.live.undo.changes))
		}
	}
}

// A batch that is larger than the undo log drops all snapshots, and the log
// begins anew.
func TestBatchBeyondTheUndoLog(t *testing.T) {
	s := newSide(t)
	s.live.undo.bound = 10
	old := s.snapshot()
	defer old.Close()
	s.fill("k", 11)
	if _, err := old.Cells(0, 10); !errors.Is(err, reconcile.ErrBusy) {
		t.Errorf("a snapshot that 11 changes have passed: %v", err)
	}
	// Beyond the live cells nothing is read live.
	if _, err := old.Cells(s.live.Cells(), s.live.Cells()+1); err != nil {
		t.Error(err)
	}
	if s.live.undo.changes != nil {
		t.Error("changes are held without a snapshot that needs them")
	}
	young := s.snapshot()
	defer young.Close()
	s.rewrite(10)
	if err := compareCells(young); err != nil {
		t.Errorf("the next snapshot: %v", err)
	}
}

// A decode ends with what differed when the snapshots were opened, whatever is
// written while their cells are read.
func TestDecodeBesideWrites(t *testing.T) {
	for seed := range uint64(5) {
		rng := seeded(t, seed)
		a, b := newSide(t), newSide(t)
		for _, s := range []*side{a, b} {
			s.fill("common", 1000)
		}
		a.fill("a", 200)
		b.fill("b", 100)
		sa, sb := a.snapshot(), b.snapshot()
		defer sa.Close()
		defer sb.Close()
		d := rateless.NewSourceDecoder(a.keys.Cells, sb, coded.Lookup(sb.Lookup))
		for n := 0; !d.Done(); n += 50 {
			for i, s := range []*side{a, b} {
				v := at(time.Hour + time.Duration(n)*time.Second)
				s.put(record(fmt.Sprint("common", rng.IntN(1000)), fmt.Sprint(i), v), record(fmt.Sprint("new", n, i), "", v))
			}
			cells, err := sa.Cells(n, n+50)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.AddCells(cells); err != nil {
				t.Fatal(err)
			}
			if n > 5000 {
				t.Fatal("the decode does not end")
			}
		}
		want := map[dbadapter.Index]rateless.Kind{}
		for i := range 200 {
			want[a.keys.Hasher.Index(fmt.Append(nil, "a", i))] = rateless.MissingHere
		}
		for i := range 100 {
			want[a.keys.Hasher.Index(fmt.Append(nil, "b", i))] = rateless.MissingThere
		}
		got := map[dbadapter.Index]rateless.Kind{}
		for _, f := range d.Differences() {
			got[dbadapter.Index(f.Index)] = f.Kind
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: %d differences, not the %d as of the start", seed, len(got), len(want))
		}
	}
}
