package reconcile

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Each case spoils one message of an honest sync. Whatever is spoilt, the side
// that it reaches must end with the named error and must not have applied
// anything that it did not ask for.
func TestSpoiltMessages(t *testing.T) {
	stranger := wire.Sent{Record: record("stranger", "unasked", at(0))}
	for name, c := range map[string]struct {
		spoil    func(m wire.Message) wire.Message
		initator error // what the initiator ends with; nil: any
		respond  error
	}{
		"proof of the initiator": {respond: ErrDenied, initator: ErrDenied, spoil: spoiling(func(h *wire.Hello) { h.Proof[0]++ })},
		"namespace":              {respond: ErrDenied, initator: ErrDenied, spoil: spoiling(func(h *wire.Hello) { h.Namespace[0]++ })},
		"proof of the responder": {initator: ErrDenied, spoil: spoiling(func(w *wire.Welcome) { w.Proof[0]++ })},
		"an echo of the initiator's proof": {initator: ErrDenied, spoil: func() func(m wire.Message) wire.Message {
			var seen wire.Proof
			return func(m wire.Message) wire.Message {
				switch m := m.(type) {
				case *wire.Hello:
					seen = m.Proof
				case *wire.Welcome:
					m.Proof = seen
				}
				return m
			}
		}()},
		"protocol version":          {initator: ErrVersion, respond: ErrVersion, spoil: spoiling(func(h *wire.Hello) { h.Version = 200 })},
		"mapping version":           {initator: ErrVersion, respond: ErrVersion, spoil: spoiling(func(h *wire.Hello) { h.Mapping = 200 })},
		"residual of the responder": {initator: ErrNotVerified, respond: ErrNotVerified, spoil: spoiling(func(r *wire.Result) { r.Residual[3]++ })},
		"residual of the initiator": {respond: ErrNotVerified, initator: ErrNotVerified, spoil: spoiling(func(r *wire.Answer) { r.Residual[3]++ })},
		"an index left out":         {initator: ErrNotVerified, spoil: spoiling(func(l *wire.Indices) { l.Indices = l.Indices[1:] })},
		"an index told twice":       {initator: ErrProtocol, spoil: spoiling(func(l *wire.Indices) { l.Indices = append(l.Indices, l.Indices[0]) })},
		"more indices than cells": {initator: ErrProtocol, spoil: spoiling(func(l *wire.Indices) {
			for i := range 200 {
				l.Indices = append(l.Indices, dbadapter.Index(i+1))
			}
		})},
		"endless cells asked for":             {initator: ErrProtocol, spoil: replacing(wire.KindResult, &wire.More{Cells: 1 << 62})},
		"no cells asked for":                  {initator: ErrProtocol, spoil: replacing(wire.KindResult, &wire.More{})},
		"an unasked record for the initiator": {initator: ErrProtocol, spoil: spoiling(func(r *wire.Records) { r.Records = append(r.Records, stranger) })},
		"a stub of nothing":                   {initator: ErrProtocol, spoil: spoiling(func(r *wire.Records) { r.Records[0].Stub = true })},
		"everything, unasked":                 {initator: ErrProtocol, spoil: spoiling(func(r *wire.Result) { r.Method = wire.MethodAll })},
		"more applied than sent":              {respond: nil, initator: ErrProtocol, spoil: spoiling(func(e *wire.End) { e.Applied = 1 << 40 })},
		"a message out of turn":               {initator: ErrProtocol, spoil: replacing(wire.KindWelcome, &wire.End{})},
		"a broken line":                       {initator: errLine, spoil: replacing(wire.KindResult, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := diverged(t, seeded(t, 11), 200, 10, 10, time.Hour, nil)
			fair := merge(a.dump(), b.dump())
			out := run(t, a, b, Options{}, func(_ bool, m wire.Message) wire.Message { return c.spoil(m) })
			if c.initator != nil && !errors.Is(out.errA, c.initator) {
				t.Errorf("the initiator ended with %v", out.errA)
			}
			if c.respond != nil && !errors.Is(out.errB, c.respond) {
				t.Errorf("the responder ended with %v", out.errB)
			}
			if (out.a.Verified && out.errA == nil) || (out.b.Verified && out.errB == nil && out.errA == nil) {
				t.Error("called verified")
			}
			for _, s := range []*side{a, b} {
				for _, r := range s.dump() {
					if string(r.Key) == "stranger" {
						t.Error("an unasked record was applied")
					}
				}
			}
			// An honest sync afterwards mends everything.
			synced(t, a, b, Options{}, nil)
			wantEqual(t, a, b)
			if !reflect.DeepEqual(a.dump(), fair) {
				t.Error("the sides agree on something else than the merge")
			}
		})
	}
}

// spoiling edits the messages of one type.
func spoiling[M wire.Message](edit func(M)) func(wire.Message) wire.Message {
	return func(m wire.Message) wire.Message {
		if m, ok := m.(M); ok {
			edit(m)
		}
		return m
	}
}

// replacing puts another message in the place of those of a kind; nil ends the line.
func replacing(kind wire.Kind, other wire.Message) func(wire.Message) wire.Message {
	return func(m wire.Message) wire.Message {
		if m.Kind() == kind {
			return other
		}
		return m
	}
}

// A responder that asks for cells for ever is stopped by the bound on cells.
func TestEndlessCells(t *testing.T) {
	a, b := diverged(t, seeded(t, 12), 50, 5, 5, time.Hour, nil)
	v := a.open()
	defer v.Close()
	s := Initiate(v, a.options(b, Options{}))
	defer s.Close()
	welcome := &wire.Welcome{Sum: dbadapter.Sum{Records: 3}}
	o := b.options(a, Options{})
	cells := 0
	for n := 0; ; n++ {
		switch e := s.Next(); e.Want {
		case WantNothing:
			if !errors.Is(s.Err(), ErrProtocol) || cells > MaxCells {
				t.Fatalf("after %d cells: %v", cells, s.Err())
			}
			return
		case WantSend:
			switch m := e.Message.(type) {
			case *wire.Hello:
				welcome.Proof = o.proof("responder", o.Remote, o.Self, m.Nonce, welcome.Nonce)
				cells += len(m.Cells)
			case *wire.Cells:
				cells += len(m.Cells)
			}
		case WantReceive:
			if n == 1 {
				s.Deliver(welcome, 1)
			} else {
				s.Deliver(&wire.More{Cells: burst}, 1)
			}
		}
	}
}

// coarse is a hasher whose checksums tell only the time: two contents of one
// minute have one checksum, as happens to one pair in 2^22.
type coarse struct{ dbadapter.Hasher }

func (c coarse) Checksum(index dbadapter.Index, latest dbadapter.Timestamp, _ []dbadapter.Digest) dbadapter.Checksum {
	return c.Hasher.Checksum(index, latest, []dbadapter.Digest{{}})
}

// What an admission refuses is reported on both sides, is not sent again, and keeps
// the sets from being called equal.
func TestRefusedRecords(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	for _, s := range []*side{a, b} {
		s.put(record("common", "", at(0)))
		s.refuseBad(wire.ReasonSignature)
	}
	a.put(record("bad a", "x", at(0)), record("good a", "x", at(0)))
	b.put(record("bad b", "x", at(0)), record("good b", "x", at(0)))
	for n := range 3 {
		out := synced(t, a, b, Options{}, nil)
		if out.a.Verified || out.b.Verified || out.a.Rejected != 2 || out.b.Rejected != 2 {
			t.Errorf("sync %d: %d and %d rejected, verified %v and %v", n, out.a.Rejected, out.b.Rejected, out.a.Verified, out.b.Verified)
		}
		if n == 0 && (out.a.Applied != 1 || out.b.Applied != 1 || out.a.Sent != 2) {
			t.Errorf("the first sync: %+v", out.a)
		}
		if n > 0 && (out.a.Sent != 0 || out.b.Sent != 0) {
			t.Errorf("sync %d sent refused records again", n)
		}
	}
	if refused := a.declined.list(); len(refused) != 1 || refused[0].Reason != wire.ReasonSignature {
		t.Errorf("a remembers %+v", refused)
	}
}

// A line that breaks between batches loses nothing that has arrived.
func TestBrokenLineKeepsWhatArrived(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	for i := range 3000 {
		b.put(record(fmt.Sprint("k", i), strings.Repeat("v", 500), at(0)))
	}
	batches := 0
	out := run(t, a, b, Options{}, func(_ bool, m wire.Message) wire.Message {
		if _, ok := m.(*wire.Records); ok {
			if batches++; batches == 3 {
				return nil
			}
		}
		return m
	})
	if !errors.Is(out.errA, errLine) {
		t.Fatal(out.errA)
	}
	arrived := len(a.dump())
	if arrived == 0 || arrived != out.a.Applied {
		t.Fatalf("%d records arrived, %d applied", arrived, out.a.Applied)
	}
	out = run(t, a, b, Options{}, nil)
	if out.errA != nil || out.a.MissingHere != 3000-arrived {
		t.Fatalf("%v, %d missing after %d had arrived", out.errA, out.a.MissingHere, arrived)
	}
	wantEqual(t, a, b)
}

// A session that is closed at any of its events ends, and leaves no goroutine
// (the coroutine) behind: TestMain checks that.
func TestCloseAtAnyMoment(t *testing.T) {
	for events := 0; ; events++ {
		a, b := diverged(t, seeded(t, 13), 100, 10, 10, time.Hour, nil)
		va := a.open()
		s := Initiate(va, a.options(b, Options{}))
		over := false
		for range events {
			e := s.Next()
			if e.Want == WantReceive {
				s.Deliver(&wire.Same{}, 1)
			}
			if over = e.Want == WantNothing; over {
				break
			}
		}
		s.Close()
		s.Close()
		if s.Next().Want != WantNothing || s.Err() == nil {
			t.Fatal("a closed session goes on")
		}
		va.Close()
		if over {
			return
		}
	}
}

// told is what the initiator will make of what it was told.
func (v *vector) told() uint64 {
	o := v.d.w.options(v.side, worldNonces[v.side])
	key := rangeKey(o.proof("ranges", o.Self, o.Remote, worldNonces[0], worldNonces[1]))
	records := v.trial.Sum().Records
	for _, r := range v.left {
		records -= v.trial.Ranges(r, r+1).Records
	}
	return toldOf(&key, v.trial.keys.Hasher, records, maps.Keys(v.inTold), v.relisted, func(i dbadapter.Index) []dbadapter.Hashed {
		return v.trial.buckets[i]
	})
}

// toldOf is the hash that fits a set of so many records.
func toldOf(key *rangeKey, h dbadapter.Hasher, records uint64, told iter.Seq[dbadapter.Index], listed map[dbadapter.Range]bool, bucket func(dbadapter.Index) []dbadapter.Hashed) (sum uint64) {
	for i := range told {
		var b dbadapter.Bucket
		held := bucket(i)
		for n := range held {
			b.Add(&held[n])
		}
		records -= uint64(len(held))
		stands := uint64(b.Pair(h).Checksum)
		if listed[dbadapter.RangeOf(i)] && len(held) > 0 {
			stands = key.mark(i, b.Digest)
		}
		sum += (*keyhash.Key)(key).Words(keyhash.TagTold, uint64(i), stands)
	}
	return sum + (*keyhash.Key)(key).Words(keyhash.TagTold, records)
}

// listed takes out of the account what was told of ranges that are compared anew.
func (v *vector) listed(m *wire.Listing) {
	in := inRanges(slices.Concat(m.Ranges, m.Left))
	maps.DeleteFunc(v.inTold, func(i dbadapter.Index, _ wire.Role) bool { return in[dbadapter.RangeOf(i)] })
	v.left = append(v.left, m.Left...)
	if v.relisted == nil {
		v.relisted = map[dbadapter.Range]bool{}
	}
	maps.Copy(v.relisted, inRanges(m.Ranges))
}

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
