package replica

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The replica of a span is that of a set that holds no other records, whatever is
// written meanwhile; so is that of a prefix and a span.
func TestSpanIsTheSetOfItsRecords(t *testing.T) {
	rng := seeded(t, 7)
	for _, span := range []wire.Span{{From: 0, To: 1}, {From: 0, To: 2000}, {From: 1000, To: 1100}, {From: 4095, To: 4096}} {
		s, alone, prefixed := newSide(t), newSide(t), newSide(t)
		for n := range 3000 {
			r := record(fmt.Sprint([]string{"p/", "q/"}[rng.IntN(2)], n), "value", at(time.Duration(rng.IntN(3000))*time.Second))
			s.put(r)
			if i := s.keys.Hasher.Index(r.Key); span.Holds(i) {
				alone.put(r)
				if r.Key[0] == 'p' {
					prefixed.put(r)
				}
			}
		}
		var reserved int64
		p, err := s.live.Span(t.Context(), s.ns, span, nil, func(n int64) error { reserved += n; return nil })
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		q, err := s.live.Prefix(t.Context(), s.ns, []byte("p/"), span, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		for n := range 300 {
			s.put(record(fmt.Sprint("p/", n), "later", at(time.Hour)))
		}
		if reserved != 0 {
			t.Errorf("%v: %d bytes are reserved before cells are asked for", span, reserved)
		}
		same(t, span, p, alone)
		same(t, span, q, prefixed)
		if reserved != spanCells*cellBytes {
			t.Errorf("%v: %d bytes are reserved for %d cells", span, reserved, spanCells)
		}
		p.Decoded()
		if _, err := p.Cells(0, 1); !errors.Is(err, errDecoded) {
			t.Errorf("%v: cells after the decode: %v", span, err)
		}
	}
}

// same fails unless the replica holds what a side holds.
func same(t *testing.T, span wire.Span, r reconcile.Replica, side *side) {
	t.Helper()
	want := side.snapshot()
	defer want.Close()
	if r.Sum().Digest != want.Sum().Digest || r.Sum().Records != want.Sum().Records {
		t.Errorf("%v: another digest or number", span)
	}
	from, to := span.All()
	if r.Ranges(from, to) != want.Ranges(from, to) {
		t.Errorf("%v: other sums", span)
	}
	estimate := func(e rateless.Estimator) float64 {
		d := rateless.NewSourceDecoder(side.keys.Cells, nil, nil)
		d.AddEstimators(e, want.Estimator())
		return d.Estimate()
	}
	if n := estimate(r.Estimator()); n > 1 {
		t.Errorf("%v: the estimators tell of %.0f differences", span, n)
	}
	for _, cells := range [][2]int{{0, 100}, {50, 10_000}} {
		got, err := r.Cells(cells[0], cells[1])
		if err != nil {
			t.Fatal(err)
		}
		if expected, err := want.Cells(cells[0], cells[1]); err != nil || !reflect.DeepEqual(got, expected) {
			t.Errorf("%v: other cells %v (%v)", span, cells, err)
		}
	}
	all := map[string]bool{}
	for r, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		all[string(r.Key)+string(r.Value)] = true
	}
	for r, err := range want.All() {
		if err != nil || !all[string(r.Key)+string(r.Value)] {
			t.Errorf("%v: %q is missing (%v)", span, r.Key, err)
		}
		delete(all, string(r.Key)+string(r.Value))
	}
	if len(all) > 0 {
		t.Errorf("%v: %d records too many", span, len(all))
	}
	for i := range dbadapter.Index(50) {
		checkBucket(t, r, want, i<<30+1)
	}
}
