package reconcile

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What a member does that knows the secret: its proofs and cells are good
// where it wants them to be.

// Everything is sent, and the initiator says that it has nothing to give in
// return, though it announced records.
func TestClosingWithoutGivingAll(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("a", "", at(0)))
	s := toResponder(t, a, b, helloOf(a, nil), &wire.Answer{Closing: true})
	if !errors.Is(s.Err(), ErrProtocol) || s.Report().Verified {
		t.Errorf("%v, verified %v", s.Err(), s.Report().Verified)
	}
}

// A responder has nothing to fetch: it has the cells. And an initiator fetches
// an offer once, whatever its size.
func TestEndlessFetches(t *testing.T) {
	large := strings.Repeat("x", 5000)
	t.Run("of a responder", func(t *testing.T) {
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		a.put(record("k", "v", at(0)), record("common", "", at(0)))
		k := a.keys.Hasher.Index([]byte("k"))
		s := toInitiator(t, a, b, Options{}, &wire.Welcome{Sum: dbadapter.Sum{Records: 1}}, &wire.Indices{Role: wire.Wanted, Indices: []dbadapter.Index{k}},
			&wire.Result{Method: wire.MethodSketch, Residual: residualOf(a, record("k", "v", at(0)))},
			&wire.Indices{Role: wire.Fetch, Indices: []dbadapter.Index{k}}, &wire.End{}, &wire.End{})
		if !errors.Is(s.Err(), ErrProtocol) {
			t.Error(s.Err())
		}
	})
	t.Run("of one offer", func(t *testing.T) {
		const n = 20
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		var theirs []dbadapter.Record
		for i := range n {
			key := fmt.Sprint("k", i)
			a.put(record(key, "old", at(0)))
			theirs = append(theirs, record(key, large, at(time.Hour)))
		}
		b.put(theirs...)
		messages := []wire.Message{helloOf(a, nil), &wire.Answer{Residual: residualOf(b, theirs...)}}
		for range n {
			messages = append(messages, &wire.Indices{Role: wire.Fetch, Indices: []dbadapter.Index{b.keys.Hasher.Index([]byte("k0"))}})
		}
		s := toResponder(t, a, b, append(messages, &wire.End{}, &wire.End{})...)
		if !errors.Is(s.Err(), ErrProtocol) || s.Report().RecordBytes > 0 {
			t.Errorf("%v after %d bytes of records", s.Err(), s.Report().RecordBytes)
		}
	})
}

// An offer that was not fetched is not sent.
func TestOfferSentUnfetched(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	ours := record("k", strings.Repeat("x", 5000), at(time.Hour))
	theirs := record("k", strings.Repeat("y", 5000), at(0))
	a.put(ours)
	applied := 0
	a.admit = func(records []dbadapter.Record) ([]Verdict, error) {
		applied += len(records)
		return a.write(records)
	}
	s := toInitiator(t, a, b, Options{}, &wire.Welcome{Sum: dbadapter.Sum{Records: 1, Digest: dbadapter.Digest{1}}}, &wire.Offers{Offers: []wire.Offer{offerOf(&theirs)}},
		&wire.Result{Method: wire.MethodSketch, Residual: residualOf(a, ours)}, &wire.End{}, sent(theirs), &wire.End{})
	if !errors.Is(s.Err(), ErrProtocol) || applied > 0 {
		t.Errorf("%v, %d records at the admission", s.Err(), applied)
	}
}

// A tombstone has no value that could be left out.
func TestStubOfATombstone(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("k", strings.Repeat("x", 5000), at(0)))
	gone := record("k", "", at(time.Hour))
	gone.Deleted, gone.Value = true, nil
	reached := false
	a.admit = func(records []dbadapter.Record) ([]Verdict, error) {
		reached = true
		return a.write(records)
	}
	stub := sent(gone)
	stub.Records[0].Stub = true
	s := toInitiator(t, a, b, Options{}, &wire.Welcome{Sum: dbadapter.Sum{Records: 1, Digest: dbadapter.Digest{1}}},
		&wire.Indices{Role: wire.Newer, Indices: []dbadapter.Index{a.keys.Hasher.Index(gone.Key)}},
		&wire.Result{Method: wire.MethodSketch, Residual: residualOf(a, a.dump()...)}, stub)
	if !errors.Is(s.Err(), wire.ErrFrame) || reached {
		t.Errorf("%v, reached the admission: %v", s.Err(), reached)
	}
}

// Cells come in full frames: one at a time, each would cost a look behind all
// that was written since the sync began.
func TestCellsDripped(t *testing.T) {
	a, b := diverged(t, seeded(t, 31), 500, 200, 200, time.Hour, nil)
	s := toResponder(t, a, b, helloOf(a, nil), &wire.Cells{Cells: make([]rateless.Cell, 1)})
	if !errors.Is(s.Err(), ErrProtocol) {
		t.Error(s.Err())
	}
}

// Numbers of records that are not true choose no work, and are not reported as
// something else.
func TestVastNumbersOfRecords(t *testing.T) {
	for name, c := range map[string]struct{ ours, theirs int }{"none here": {0, 1}, "some here": {5, 3}} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			for i := range c.theirs {
				a.put(record(fmt.Sprint("a", i), "", at(0)))
			}
			for i := range c.ours {
				b.put(record(fmt.Sprint("b", i), "", at(0)))
			}
			for _, m := range []wire.Method{wire.MethodAuto, wire.MethodAll} {
				s, o := asked(t, a, b)
				p := script{o: o, says: inTurn(helloOf(a, func(h *wire.Hello) { h.Records, h.Method = math.MaxInt64, m }))}
				for _, m := range p.play(t, s, 100) {
					if more, ok := m.(*wire.More); ok && more.Cells > burst {
						t.Errorf("%d cells asked for", more.Cells)
					}
				}
				if r := s.Report(); r.Differences() < 0 || r.Verified || s.Err() == nil {
					t.Errorf("%d differences, verified %v, %v", r.Differences(), r.Verified, s.Err())
				}
				s = toInitiator(t, b, a, Options{}, &wire.Welcome{Sum: dbadapter.Sum{Records: math.MaxInt64}}, &wire.Result{Method: wire.MethodAll, Bytes: math.MaxInt64, Estimate: math.MaxInt64}, &wire.End{})
				if r := s.Report(); r.Differences() < 0 || r.ForecastBytes < 0 || r.Estimate < 0 || r.Verified || !errors.Is(s.Err(), ErrNotVerified) && c.ours == 0 {
					t.Errorf("%+v, %v", r, s.Err())
				}
			}
		})
	}
}

// What comes must be what the cells told: a value that does not match its
// checksum is not applied.
func TestValueOfAnotherChecksum(t *testing.T) {
	for name, c := range map[string]struct {
		held  bool // by the responder, older
		wrong func(dbadapter.Record) []dbadapter.Record
	}{
		"another value":   {false, func(r dbadapter.Record) []dbadapter.Record { r.Value = []byte("other"); return []dbadapter.Record{r} }},
		"another version": {true, func(r dbadapter.Record) []dbadapter.Record { r.Version.Clock++; return []dbadapter.Record{r} }},
		"twice":           {true, func(r dbadapter.Record) []dbadapter.Record { return []dbadapter.Record{r, r} }},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			told := record("k", "told", at(time.Hour))
			a.put(told, record("common", "", at(0)))
			b.put(record("common", "", at(0)))
			var own []dbadapter.Record
			if c.held {
				own = append(own, record("k", "old", at(0)))
				b.put(own...)
			}
			before := b.dump()
			s := toResponder(t, a, b, helloOf(a, nil), &wire.Answer{Residual: residualOf(b, own...)}, sent(c.wrong(told)...), &wire.End{}, &wire.End{})
			if !errors.Is(s.Err(), ErrNotVerified) || s.Report().Verified || !reflect.DeepEqual(b.dump(), before) {
				t.Errorf("%v, verified %v, holds %v", s.Err(), s.Report().Verified, b.dump())
			}
		})
	}
}

// A bucket of several batches is checked as a whole, and arrives as a whole.
func TestBucketOfSeveralBatches(t *testing.T) {
	weak := storetest.Weak(dbadapter.NewHasher(testSecret), 1)
	for _, size := range []int{100, 30_000, 200_000} {
		a, b := newSide(t, "a", weak), newSide(t, "b", weak)
		b.put(record("common", "", at(0)))
		for i := range 20 {
			a.put(record(fmt.Sprint("k", i), strings.Repeat("x", size), at(time.Hour)))
		}
		out := run(t, a, b, Options{}, nil)
		if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
			t.Fatalf("%v, %v, %+v", out.errA, out.errB, out.b)
		}
		wantEqual(t, a, b)
		c, d := newSide(t, "a", weak), newSide(t, "b", weak)
		for _, r := range a.dump() {
			c.put(r)
		}
		d.put(record("common", "", at(-time.Hour)))
		last := 0
		out = run(t, c, d, Options{}, func(initiator bool, m wire.Message) wire.Message {
			if r, ok := m.(*wire.Records); ok && initiator {
				if last += len(r.Records); last == 21 {
					r.Records = r.Records[:len(r.Records)-1]
				}
			}
			return m
		})
		if !errors.Is(out.errB, ErrNotVerified) {
			t.Errorf("with the last of a bucket left out: %v; %v", out.errB, out.log)
		}
		if len(d.dump()) == 21 || last != 21 {
			t.Errorf("%d records, %d sent", len(d.dump()), last)
		}
	}
}

// Where all that the responder sends is known to the initiator by its digest,
// another record in its place is noticed.
func TestWhatComesAddsUp(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("common", "", at(0)))
	b.put(record("common", "", at(0)), record("k", "told", at(0)))
	out := run(t, a, b, Options{}, func(initiator bool, m wire.Message) wire.Message {
		if r, ok := m.(*wire.Records); ok && !initiator {
			r.Records[0].Record.Value = []byte("other")
		}
		return m
	})
	if !errors.Is(out.errA, ErrNotVerified) || out.a.Verified || out.b.Verified {
		t.Errorf("%v, verified %v and %v", out.errA, out.a.Verified, out.b.Verified)
	}
}

// The same at the responder: cells from which one pair was taken out leave no
// other trace, since the residual is the same without it.
func TestHiddenPairIsMissed(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("common", "", at(0)), record("k", "hidden", at(0)), record("l", "told", at(0)))
	b.put(record("common", "", at(0)))
	for _, closing := range []bool{true, false} {
		told := []dbadapter.Record{record("common", "", at(0)), record("l", "told", at(0))}
		if closing {
			told = told[:1]
		}
		hidden := rateless.NewSketch(a.keys.Cells, FirstCells)
		for _, r := range told {
			hidden.Add(pairOf(a.keys.Hasher, &r))
		}
		s := toResponder(t, a, b,
			helloOf(a, func(h *wire.Hello) { h.Cells = hidden.Prefix(FirstCells) }),
			&wire.Answer{Residual: residualOf(b), Closing: closing}, sent(record("l", "told", at(0))), &wire.End{}, &wire.End{})
		if !errors.Is(s.Err(), ErrNotVerified) || s.Report().Verified {
			t.Errorf("closing %v: %v, verified %v", closing, s.Err(), s.Report().Verified)
		}
	}
}

// A set without records has the digest 0. A side that announces another one is sent
// everything, gives nothing, and must not be called equal.
func TestDigestOfNoRecords(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	b.put(record("b", "", at(0)))
	for _, direction := range []wire.Direction{wire.Both, wire.Pull} {
		s := toResponder(t, a, b, helloOf(a, func(h *wire.Hello) { h.Direction, h.Digest = direction, dbadapter.Digest{1} }), &wire.Answer{Closing: true})
		if !errors.Is(s.Err(), ErrProtocol) || s.Report().Verified || s.Report().Sent > 0 {
			t.Errorf("at the responder: %v, %+v", s.Err(), s.Report())
		}
	}
	s := toInitiator(t, b, a, Options{}, &wire.Welcome{Sum: dbadapter.Sum{Digest: dbadapter.Digest{1}}}, &wire.Result{Method: wire.MethodAll}, &wire.End{}, &wire.End{})
	if !errors.Is(s.Err(), ErrProtocol) || s.Report().Verified || s.Report().Sent > 0 {
		t.Errorf("at the initiator: %v, %+v", s.Err(), s.Report())
	}
}

// In a push nothing comes that could add up; where nothing was told to be
// held there, the digest must be the residual.
func TestHiddenRecordInAPush(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("common", "", at(0)), record("k", "", at(0)))
	b.put(record("common", "", at(0)), record("hidden", "", at(0)))
	digest, records := b.state()
	s := toInitiator(t, a, b, Options{Direction: wire.Push}, &wire.Welcome{Sum: dbadapter.Sum{Records: records, Digest: digest}},
		&wire.Indices{Role: wire.Wanted, Indices: []dbadapter.Index{a.keys.Hasher.Index([]byte("k"))}},
		&wire.Result{Method: wire.MethodSketch, Residual: residualOf(a, record("k", "", at(0)))}, &wire.End{}, &wire.End{Applied: 1})
	if !errors.Is(s.Err(), ErrNotVerified) || s.Report().Verified {
		t.Errorf("%v, %+v", s.Err(), s.Report())
	}
}

// A record that the responder did not ask for, of an index told otherwise or
// of an index not told.
func TestUnaskedForTheResponder(t *testing.T) {
	for name, unasked := range map[string]dbadapter.Record{
		"of no index told": record("stranger", "", at(0)),
		"of one lacking":   record("b", "other", at(time.Hour)),
	} {
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		a.put(record("common", "", at(0)), record("a", "", at(0)))
		ours := record("b", "", at(0))
		b.put(record("common", "", at(0)), ours)
		before := b.dump()
		s := toResponder(t, a, b, helloOf(a, nil), &wire.Answer{Residual: residualOf(b, ours)}, sent(unasked), &wire.End{})
		if !errors.Is(s.Err(), ErrProtocol) || !reflect.DeepEqual(b.dump(), before) {
			t.Errorf("%s: %v", name, s.Err())
		}
	}
}

// A side that only gives takes nothing, whatever it is told.
func TestRecordsAgainstTheDirection(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	ours, theirs := record("ours", "", at(0)), record("theirs", "", at(0))
	a.put(ours)
	b.put(theirs)
	s := toInitiator(t, a, b, Options{Direction: wire.Push}, &wire.Welcome{Sum: dbadapter.Sum{Records: 1, Digest: dbadapter.Digest{1}}},
		&wire.Indices{Role: wire.Lacking, Indices: []dbadapter.Index{a.keys.Hasher.Index(theirs.Key)}},
		&wire.Result{Method: wire.MethodSketch, Residual: residualOf(a)}, sent(theirs), &wire.End{})
	if !errors.Is(s.Err(), ErrProtocol) || len(a.dump()) != 1 {
		t.Errorf("a push: %v", s.Err())
	}
	s = toResponder(t, a, b, helloOf(a, func(h *wire.Hello) { h.Direction = wire.Pull }), &wire.Answer{Residual: residualOf(b, theirs)}, sent(ours), &wire.End{})
	if !errors.Is(s.Err(), ErrProtocol) || len(b.dump()) != 1 {
		t.Errorf("a pull: %v", s.Err())
	}
}

// What does not match its checksum waits for the rest of its bucket, in however many
// batches it comes. It reaches the admission only where it is more than may wait, and the
// sync fails all the same.
func TestUnmatchedWaitsWithinBounds(t *testing.T) {
	for name, c := range map[string]struct {
		size, times, admitted int
	}{"short": {10, 5, 0}, "large": {1 << 20, 6, 4}} {
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		a.put(record("k", "told", at(time.Hour)), record("common", "", at(0)))
		b.put(record("common", "", at(0)))
		reached := 0
		b.admit = func(records []dbadapter.Record) ([]Verdict, error) {
			reached += len(records)
			return make([]Verdict, len(records)), nil
		}
		messages := []wire.Message{helloOf(a, nil), &wire.Answer{Residual: residualOf(b)}}
		for range c.times {
			messages = append(messages, sent(record("k", strings.Repeat("x", c.size), at(time.Hour))))
		}
		s := toResponder(t, a, b, append(messages, &wire.End{})...)
		if !errors.Is(s.Err(), ErrNotVerified) || reached != c.admitted {
			t.Errorf("%s: %v, %d records at the admission", name, s.Err(), reached)
		}
	}
}
