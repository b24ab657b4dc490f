package replica

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// scanned is a snapshot with further pairs and perhaps an error behind them.
type scanned struct {
	dbadapter.Snapshot
	further []dbadapter.Pair
	err     error
}

func (s scanned) Pairs(ctx context.Context, from, to dbadapter.Index) iter.Seq2[dbadapter.Pair, error] {
	return func(yield func(dbadapter.Pair, error) bool) {
		for p, err := range s.Snapshot.Pairs(ctx, from, to) {
			if !yield(p, err) {
				return
			}
		}
		for _, p := range s.further {
			if !yield(p, ctx.Err()) {
				return
			}
		}
		if s.err != nil {
			yield(dbadapter.Pair{}, s.err)
		}
	}
}

// Close leaves the snapshot open for the next scan.
func (s scanned) Close() error { return nil }

// opened is a namespace whose snapshot is that.
type opened struct {
	dbadapter.Namespace
	snap scanned
}

func (o opened) Snapshot() (dbadapter.Snapshot, error) { return o.snap, nil }

// over is the side's namespace as if it had ten thousand pairs more.
func over(t *testing.T, s *side, err error) opened {
	t.Helper()
	snap, failed := s.ns.Snapshot()
	if failed != nil {
		t.Fatal(failed)
	}
	t.Cleanup(func() { snap.Close() })
	rng := seeded(t, 22)
	further := make([]dbadapter.Pair, 10_000)
	for i := range further {
		index := rateless.Index(1 + rng.Uint64N(1<<41))
		further[i] = dbadapter.Pair{Index: dbadapter.Index(index), Checksum: dbadapter.Checksum(rateless.Seal(index, rng.Uint64N(1<<34)))}
	}
	return opened{s.ns, scanned{snap, further, err}}
}

// Each sketch that a scan of many pairs makes is that of an Add of each.
func TestScansOfManyPairs(t *testing.T) {
	s := newSide(t)
	s.put(record("k", "", at(0)))
	ns := over(t, s, nil)
	want := rateless.NewSketch(s.keys.Cells, liveCells(1<<18)+5000)
	for p, err := range ns.snap.Pairs(t.Context(), 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		want.Add(coded.Pair(p.Index, p.Checksum))
	}
	same := func(what string, got []rateless.Cell, from, to int) {
		t.Helper()
		if cells, err := want.Cells(from, to); err != nil || !reflect.DeepEqual(got, cells) {
			t.Errorf("%s: other cells than of an Add of each pair (%v)", what, err)
		}
	}
	k := New(s.keys)
	if err := k.Load(t.Context(), ns.snap, nil); err != nil {
		t.Fatal(err)
	}
	same("Load", k.sketch.Prefix(k.Cells()), 0, k.Cells())

	before := k.Cells()
	k.ranges.Add(1, dbadapter.Sum{Records: 1 << 18}) // as if there were many
	if grown, err := k.Grow(t.Context(), ns, nil); !grown || err != nil {
		t.Fatal(grown, err)
	}
	same("Grow", k.sketch.Prefix(k.Cells()), 0, k.Cells())
	if before == k.Cells() || !reflect.DeepEqual(k.sketch.Estimator(), want.Estimator()) {
		t.Error("Grow: another estimator")
	}

	v, err := k.Snapshot(t.Context(), ns, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	from := k.Cells()
	cells, err := v.Cells(from-10, from+3000)
	if err != nil {
		t.Fatal(err)
	}
	same("Snapshot", cells, from-10, from+3000)
}

// A scan that breaks off, or is cancelled, says why, and leaves the live sketch as
// it was.
func TestScansThatBreakOff(t *testing.T) {
	s := newSide(t)
	s.put(record("k", "", at(0)))
	bad := errors.New("bad")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		ns   opened
		want error
	}{
		"an error":  {t.Context(), over(t, s, bad), bad},
		"no longer": {cancelled, over(t, s, nil), context.Canceled},
	} {
		before := s.live.sketch.Clone()
		digest, records, seq := s.live.State()
		unchanged := func(what string) {
			t.Helper()
			if d, r, q := s.live.State(); d != digest || r != records || q != seq ||
				!reflect.DeepEqual(s.live.sketch.Prefix(s.live.Cells()), before.Prefix(before.Len())) {
				t.Errorf("%s after %s: the live sketch has changed", what, name)
			}
		}
		if err := s.live.Load(c.ctx, c.ns.snap, nil); !errors.Is(err, c.want) {
			t.Errorf("Load after %s: %v", name, err)
		}
		unchanged("Load")
		s.pretend(1 << 18)
		grown, err := s.live.Grow(c.ctx, c.ns, nil)
		s.pretend(-1 << 18)
		if grown || !errors.Is(err, c.want) {
			t.Errorf("Grow after %s: %v %v", name, grown, err)
		}
		unchanged("Grow")
		v, err := s.live.Snapshot(c.ctx, c.ns, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Cells(s.live.Cells(), s.live.Cells()+100); !errors.Is(err, c.want) {
			t.Errorf("Snapshot after %s: %v", name, err)
		}
		if v.beyond != nil {
			t.Errorf("Snapshot after %s: the cells of a part of the set are kept", name)
		}
		v.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.fill("p", 3000)
	prefix, err := s.live.Prefix(ctx, s.ns, []byte("p"), wire.Span{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prefix.Close()
	before, held := prefix.sketch.Prefix(100), prefix.sketch.Len()
	cancel()
	if _, err := prefix.Cells(held, held+1); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled prefix: %v", err)
	}
	if after, err := prefix.Cells(0, 100); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("the cells before the cancellation are others now (%v)", err)
	}
}
