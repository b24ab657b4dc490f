package reconcile

import (
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// apart are two sides with n records each that the other lacks.
func apart(t *testing.T, n int) (a, b *side) {
	t.Helper()
	a, b = newSide(t, "a", nil), newSide(t, "b", nil)
	for i := range n {
		a.put(record(fmt.Sprint("a", i), "1", at(0)))
		b.put(record(fmt.Sprint("b", i), "1", at(0)))
	}
	b.parts = 64
	return a, b
}

// Whatever a responder says of its ranges, the initiator plans no more parts than there
// are ranges, and no other sync.
func TestForgedSums(t *testing.T) {
	sums := &wire.Sums{}
	for name, c := range map[string]struct {
		forge func(wire.Message) wire.Message
		span  wire.Span
		want  error
	}{
		"few":             {forge: spoiling(func(s *wire.Sums) { s.Sums = s.Sums[:4095] }), want: ErrProtocol},
		"none":            {forge: replacing(wire.KindSums, &wire.More{Cells: 64}), want: ErrProtocol},
		"twice":           {forge: replacing(wire.KindResult, sums), want: ErrProtocol},
		"before cells":    {forge: replacing(wire.KindResult, &wire.More{Cells: 64}), want: ErrProtocol},
		"another method":  {forge: replacing(wire.KindResult, &wire.Result{Method: wire.MethodAll}), want: ErrProtocol},
		"of other ranges": {forge: func(m wire.Message) wire.Message { return m }, span: wire.Span{From: 1, To: 4000}},
		"equal":           {forge: spoiling(func(s *wire.Sums) { *s = *sums }), want: ErrNotVerified},
		"an estimate":     {forge: replacing(wire.KindResult, &wire.Result{Method: wire.MethodParts, Estimate: 1<<63 - 1})},
	} {
		a, b := apart(t, 100)
		r := a.open()
		sums.Sums = nil
		for i := range dbadapter.Range(dbadapter.Ranges) {
			sums.Sums = append(sums.Sums, folded(r.Ranges(i, i+1)))
		}
		r.Close()
		out := run(t, a, b, Options{Span: c.span}, func(initiator bool, m wire.Message) wire.Message {
			if initiator {
				return m
			}
			return c.forge(m)
		})
		if !errors.Is(out.errA, c.want) || c.want == nil && out.errA != nil {
			t.Errorf("%s: %v", name, out.errA)
		}
		if len(a.dump()) != 100 {
			t.Errorf("%s: records have come", name)
		}
		if c.want == nil {
			s := out.a.Split
			if s == nil || s.Estimate > 200 || len(s.Ranges) > 200 {
				t.Fatalf("%s: %+v", name, s)
			}
			if spans := s.Spans(10); len(spans) > len(s.Ranges) || len(spans) < 2 {
				t.Errorf("%s: %d parts of %d ranges", name, len(spans), len(s.Ranges))
			}
		} else if out.a.Split != nil {
			t.Errorf("%s: it is split", name)
		}
	}
}

// What lies outside the ranges of a sync does not come in by it.
func TestOutsideTheSpan(t *testing.T) {
	for _, method := range []wire.Method{wire.MethodAuto, wire.MethodAll} {
		a, b := apart(t, 50)
		half := wire.Span{From: 0, To: 2048}
		va, vb := a.openSpan(half), b.open() // the responder takes no notice of the ranges
		sa, sb := Initiate(va, a.options(b, Options{Span: half, Method: method})), Respond(opening(vb), b.options(a, Options{}))
		var out outcome
		carry(t, sa, sb, &out, nil)
		if !errors.Is(sa.Err(), ErrProtocol) && !errors.Is(sb.Err(), ErrProtocol) {
			t.Errorf("%v: %v, %v", method, sa.Err(), sb.Err())
		}
		for _, r := range a.dump() {
			if r.Key[0] == 'b' && !half.Holds(a.keys.Hasher.Index(r.Key)) {
				t.Errorf("%v: %q has come", method, r.Key)
			}
		}
		va.Close()
		vb.Close()
	}
}

// Spans have the ranges that differ, each once, and as many differences as they should.
func TestSpans(t *testing.T) {
	var some []dbadapter.Range
	for i := range dbadapter.Range(1000) {
		some = append(some, 4*i+1)
	}
	for _, c := range []struct {
		split Split
		size  int64
		want  int
	}{
		{Split{some, 2_000_000}, 1 << 15, 63},
		{Split{some, 0}, 1 << 15, 2},
		{Split{some, 1 << 62}, 1 << 15, 1000},
		{Split{some[:1], 1 << 20}, 1 << 15, 1},
		{Split{some[:2], 1}, 1 << 15, 2},
	} {
		spans := c.split.Spans(c.size)
		if len(spans) != c.want {
			t.Errorf("%d differences in %d ranges: %d parts, not %d", c.split.Estimate, len(c.split.Ranges), len(spans), c.want)
		}
		at := 0
		for _, s := range spans {
			for ; at < len(c.split.Ranges) && c.split.Ranges[at] < s.To; at++ {
				if c.split.Ranges[at] < s.From {
					t.Fatalf("range %d is in no part", c.split.Ranges[at])
				}
			}
		}
		if at != len(c.split.Ranges) {
			t.Errorf("%d of %d ranges are in a part", at, len(c.split.Ranges))
		}
	}
}
