package replica

import (
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A listing has what the records say, whatever was kept, in parts of any size, and
// as of the snapshot's moment.
func TestListing(t *testing.T) {
	s := newSide(t)
	s.fill("k", 3*listPart)
	want := map[dbadapter.Index]dbadapter.Sum{}
	snap := s.snapshot()
	defer snap.Close()
	for r, err := range snap.All() {
		if err != nil {
			t.Fatal(err)
		}
		want[r.Index] = want[r.Index].Add(dbadapter.Sum{Records: 1, Digest: r.Digest})
	}
	s.fill("later", 100)
	prefix, err := s.live.Prefix(t.Context(), s.ns, []byte("k"), wire.Span{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prefix.Close()
	for name, r := range map[string]reconcile.Replica{"a snapshot": snap, "a prefix": prefix} {
		for _, ranges := range [][]dbadapter.Range{nil, {0}, {7, 8, 4095}, all()} {
			last, listed := dbadapter.Index(0), 0
			for b, err := range r.List(ranges) {
				if err != nil {
					t.Fatal(err)
				}
				if b.Index <= last || b.Sum != want[b.Index] || !slices.Contains(ranges, dbadapter.RangeOf(b.Index)) {
					t.Fatalf("%s lists %v behind %d, in %v", name, b, last, ranges)
				}
				last, listed = b.Index, listed+1
			}
			due := 0
			for i := range want {
				if slices.Contains(ranges, dbadapter.RangeOf(i)) {
					due++
				}
			}
			if listed != due {
				t.Errorf("%s lists %d of %d in %d ranges", name, listed, due, len(ranges))
			}
		}
	}
	// One range of very many records takes several parts.
	count := 0
	for part, err := range parts(t.Context(), snap.store, 1, 1<<42-11) {
		if count += len(part); err != nil || len(part) > listPart {
			t.Fatal(len(part), err)
		}
	}
	if count != len(want) {
		t.Errorf("%d of %d indices in parts", count, len(want))
	}
}

func all() (list []dbadapter.Range) {
	for r := range dbadapter.Range(dbadapter.Ranges) {
		list = append(list, r)
	}
	return list
}

// The sum of a range that was kept wrong is repaired once, by whichever snapshot
// finds it first, with what was written meanwhile.
func TestRepairOfALiveSum(t *testing.T) {
	s := newSide(t)
	s.fill("k", 1000)
	const at = dbadapter.Range(77)
	from, _ := at.Bounds()
	s.live.ranges.Add(from, dbadapter.Sum{Records: 2, Digest: dbadapter.Digest{9}})
	first, second := s.snapshot(), s.snapshot()
	defer first.Close()
	defer second.Close()
	s.fill("later", 1000)
	for n, snap := range []*Snapshot{first, second} {
		var sum dbadapter.Sum
		for b, err := range snap.List([]dbadapter.Range{at}) {
			if err != nil {
				t.Fatal(err)
			}
			sum = sum.Add(b.Sum)
		}
		if sum == snap.Ranges(at, at+1) {
			t.Fatal("the sum was kept right")
		}
		snap.Repair(at, sum)
		if snap.Ranges(at, at+1) != sum || snap.Ranges(0, dbadapter.Ranges).Digest != snap.Sum().Digest {
			t.Errorf("snapshot %d is not repaired", n)
		}
		sameRanges(t, s.live.ranges, recomputed(t, s).ranges)
	}
	// An audit repairs it for all snapshots that are open.
	s.live.ranges.Add(from, dbadapter.Sum{Digest: dbadapter.Digest{7}})
	fourth := s.snapshot()
	defer fourth.Close()
	if d, err := s.live.Audit(t.Context(), s.ns, nil); err != nil || d.Ranges != 1 {
		t.Fatal(d, err)
	}
	fourth.Repair(at, recomputed(t, s).ranges.Of(at, at+1))
	sameRanges(t, s.live.ranges, recomputed(t, s).ranges)
	// What goes wrong later is found by a later snapshot.
	s.live.ranges.Add(from, dbadapter.Sum{Digest: dbadapter.Digest{5}})
	third := s.snapshot()
	defer third.Close()
	third.Repair(at, recomputed(t, s).ranges.Of(at, at+1))
	sameRanges(t, s.live.ranges, recomputed(t, s).ranges)
	if fmt.Sprint(s.live.repaired) != "map[77:3]" {
		t.Error(s.live.repaired)
	}
}

// A replica of some ranges lists and repairs these alone, in the live sums too.
func TestRepairOfASpan(t *testing.T) {
	s := newSide(t)
	s.fill("k", 3000)
	const at = dbadapter.Range(77)
	from, _ := at.Bounds()
	s.live.ranges.Add(from, dbadapter.Sum{Records: 2, Digest: dbadapter.Digest{9}})
	span, err := s.live.Span(t.Context(), s.ns, wire.Span{From: 64, To: 128}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer span.Close()
	var sum dbadapter.Sum
	for b, err := range span.List([]dbadapter.Range{at}) {
		if err != nil {
			t.Fatal(err)
		}
		sum = sum.Add(b.Sum)
	}
	for r := range dbadapter.Range(dbadapter.Ranges) { // as a session does that has found its total wrong
		if r != at {
			span.Repair(r, span.Ranges(r, r+1))
		}
	}
	span.Repair(at, sum)
	if span.Ranges(at, at+1) != sum {
		t.Error("the replica is not repaired")
	}
	sameRanges(t, s.live.ranges, recomputed(t, s).ranges)
}
