package replica

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A replica of a prefix answers as a namespace would that holds the records
// with the prefix alone, also where keys with and without it share an index.
func TestPrefixIsTheSetOfItsRecords(t *testing.T) {
	for _, indices := range []int{0, 7, 100} {
		s, alone := newSide(t), newSide(t)
		if indices > 0 {
			s, alone = weak(t, indices), weak(t, indices)
		}
		rng := seeded(t, 5)
		for n := range 300 {
			r := record(fmt.Sprint([]string{"p/", "q/", "p"}[rng.IntN(3)], n), "value", at(time.Duration(rng.IntN(3000))*time.Second))
			s.put(r)
			if strings.HasPrefix(string(r.Key), "p/") {
				alone.put(r)
			}
		}
		p, err := s.live.Prefix(t.Context(), s.ns, []byte("p/"), wire.Span{}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		s.put(record("p/later", "", at(0)))
		want := alone.snapshot()
		defer want.Close()
		if p.Sum().Digest != want.Sum().Digest || p.Sum().Records != want.Sum().Records || !reflect.DeepEqual(p.Estimator(), want.Estimator()) {
			t.Errorf("%d indices: another digest, number or estimator", indices)
		}
		for r := range dbadapter.Range(dbadapter.Ranges) {
			if p.Ranges(r, r+1) != want.Ranges(r, r+1) {
				t.Errorf("%d indices: range %d is another", indices, r)
			}
		}
		for _, span := range [][2]int{{0, 100}, {1 << 14, 1<<14 + 10}, {50, 40_000}} {
			got, err := p.Cells(span[0], span[1])
			if err != nil {
				t.Fatal(err)
			}
			if cells, err := want.Cells(span[0], span[1]); err != nil || !reflect.DeepEqual(got, cells) {
				t.Errorf("%d indices: other cells %v (%v)", indices, span, err)
			}
		}
		for r, err := range p.All() {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(r.Key), "p/") || string(r.Key) == "p/later" {
				t.Errorf("%q is in the replica", r.Key)
			}
		}
		for i := range dbadapter.Index(200) {
			checkBucket(t, p, want, i+1)
		}
		p.Decoded()
		if p.sums != nil || p.sketch != nil {
			t.Error("the memory of a decode that is over is not released")
		}
		if _, err := p.Cells(0, 1); err == nil {
			t.Error("cells are given after the decode")
		}
		if err := p.Lookup([]dbadapter.Index{1}, make([]dbadapter.Checksum, 1)); err == nil {
			t.Error("a checksum is given after the decode")
		}
	}
}

// checkBucket compares what two replicas hold under an index.
func checkBucket(t *testing.T, got reconcile.Replica, want *Snapshot, i dbadapter.Index) {
	t.Helper()
	a, errA := got.Buckets([]dbadapter.Index{i})
	b, errB := want.Buckets([]dbadapter.Index{i})
	if errA != nil || errB != nil || len(a[0]) != len(b[0]) || len(a[0]) > 0 && !reflect.DeepEqual(a, b) {
		t.Errorf("index %d: %d records, not %d (%v, %v)", i, len(a[0]), len(b[0]), errA, errB)
	}
	sums := make([]dbadapter.Checksum, 2)
	errA = got.Lookup([]dbadapter.Index{i}, sums[:1])
	errB = want.Lookup([]dbadapter.Index{i}, sums[1:])
	if errA != nil || errB != nil || sums[0] != sums[1] {
		t.Errorf("index %d: checksums %v (%v, %v)", i, sums, errA, errB)
	}
}

// weak is a side whose keys share a few indices.
func weak(t *testing.T, indices int) *side {
	t.Helper()
	s := newSide(t)
	s.keys.Hasher = storetest.Weak(s.keys.Hasher, indices)
	s.live = New(s.keys)
	store := memdb.New(memdb.Options{})
	t.Cleanup(func() { store.Close() })
	var err error
	if s.ns, err = store.Namespace(t.Context(), s.keys.ID, s.keys.Hasher, s.live.Observe); err != nil {
		t.Fatal(err)
	}
	return s
}

// A prefix that no key has is an empty set.
func TestPrefixOfNoKey(t *testing.T) {
	s := newSide(t)
	s.fill("k", 10)
	p, err := s.live.Prefix(t.Context(), s.ns, []byte("x"), wire.Span{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cells, err := p.Cells(0, 10)
	if err != nil || p.Sum().Records != 0 || p.Sum().Digest != (dbadapter.Digest{}) || !reflect.DeepEqual(cells, rateless.NewSketch(s.keys.Cells, 10).Prefix(10)) {
		t.Error(p.Sum().Records, p.Sum().Digest, err)
	}
}

// The scan of a prefix asks for its memory before it takes it, and ends if there
// is not enough.
func TestPrefixReserves(t *testing.T) {
	s := newSide(t)
	s.fill("p/", 3*reserveEvery)
	var asked int64
	p, err := s.live.Prefix(t.Context(), s.ns, []byte("p/"), wire.Span{}, nil, func(n int64) error { asked += n; return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if want := int64(rangeBytes + 3*reserveEvery*recordBytes + cellBytes*liveCells(p.Sum().Records)); asked != want {
		t.Errorf("%d bytes were reserved, not %d", asked, want)
	}
	left := int64(2 * reserveEvery * recordBytes)
	_, err = s.live.Prefix(t.Context(), s.ns, []byte("p/"), wire.Span{}, nil, func(n int64) error {
		if left -= n; left < 0 {
			return reconcile.ErrBusy
		}
		return nil
	})
	if !errors.Is(err, reconcile.ErrBusy) {
		t.Errorf("a scan that does not fit: %v", err)
	}
}
