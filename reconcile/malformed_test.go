package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A malformed frame in mid-session is answered with Refuse(protocol), at
// whatever moment it comes; a line that broke is answered with nothing.
func TestMalformedFrameIsAnswered(t *testing.T) {
	garbage := []byte{5, 0xff, 1, 2, 3, 4}
	_, _, malformed := wire.Read(bytes.NewReader(garbage))
	for _, c := range []struct {
		fail    error
		refusal bool
	}{{malformed, true}, {errLine, false}} {
		for at := range 6 {
			a, b := diverged(t, seeded(t, 6), 50, 150, 20, time.Hour, nil)
			for _, victim := range []bool{true, false} {
				va, vb := a.open(), b.open()
				sa, sb := Initiate(va, a.options(b, Options{})), Respond(opening(vb), b.options(a, Options{}))
				var out outcome
				n := 0
				var last wire.Message
				s := sb
				if victim {
					s = sa
				}
				carry(t, sa, sb, &out, func(initiator bool, m wire.Message) wire.Message {
					if initiator != victim { // it goes to the victim
						if n++; n > at {
							s.Fail(c.fail) // which Deliver does not undo
						}
					} else {
						last = m
					}
					return m
				})
				r, refused := last.(*wire.Refuse)
				if n > at && (refused != c.refusal || refused && r.Code != wire.CodeProtocol || c.refusal && !errors.Is(s.Err(), ErrProtocol)) {
					t.Errorf("after %d messages, %v: the last word is %T, %v", at, c.fail, last, s.Err())
				}
				sa.Close()
				sb.Close()
				va.Close()
				vb.Close()
			}
		}
	}
}

// An End cannot name records as refused that were not sent, nor name one twice,
// nor count more than were sent since the last one.
func TestEndOfWhatWasNotSent(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	common, ofA, ofB := record("common", "", at(0)), record("a", "", at(0)), record("b", "", at(0))
	a.put(common, ofA)
	b.put(common, ofB)
	refusal := func(s *side, r dbadapter.Record) wire.Refusal {
		h := hashed(s.keys.Hasher, r)[0]
		return wire.Refusal{Index: h.Index, Digest: h.Digest, Reason: wire.ReasonWriter}
	}
	for name, c := range map[string]struct {
		end wire.End
		err error
	}{
		"applied":             {wire.End{Applied: 1}, nil},
		"refused":             {wire.End{Refusals: []wire.Refusal{refusal(b, ofB)}}, nil},
		"both":                {wire.End{Applied: 1, Refusals: []wire.Refusal{refusal(b, ofB)}}, ErrProtocol},
		"another of theirs":   {wire.End{Refusals: []wire.Refusal{refusal(b, common)}}, ErrProtocol},
		"one of the sender's": {wire.End{Refusals: []wire.Refusal{refusal(a, ofA)}}, ErrProtocol},
		"another digest":      {wire.End{Refusals: []wire.Refusal{{Index: refusal(b, ofB).Index, Digest: dbadapter.Digest{5}, Reason: wire.ReasonWriter}}}, ErrProtocol},
		"one twice":           {wire.End{Refusals: []wire.Refusal{refusal(b, ofB), refusal(b, ofB)}}, ErrProtocol},
		"two applied":         {wire.End{Applied: 2}, ErrProtocol},
		"vast":                {wire.End{Applied: math.MaxInt64}, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			for _, all := range []bool{false, true} {
				b.declined.forget()
				messages := []wire.Message{helloOf(a, func(h *wire.Hello) {
					if all {
						h.Method = wire.MethodAll
					}
				}), &wire.Answer{Residual: residualOf(b, ofB)}, sent(ofA), &c.end, &wire.End{}}
				if all {
					messages[2] = sent(ofA, common)
				}
				b.admit = func(r []dbadapter.Record) ([]Verdict, error) { return make([]Verdict, len(r)), nil }
				s := toResponder(t, a, b, messages...)
				want := c.err
				if all && (name == "both" || name == "another of theirs" || name == "two applied") {
					want = nil // both records were sent
				}
				if !errors.Is(s.Err(), want) || want != nil && len(b.declined.list()) > 0 && name != "one twice" {
					t.Errorf("all %v: %v, declined %v", all, s.Err(), b.declined.list())
				}
			}
		})
	}
}

// Numbers that a peer says do not wrap, and do not become a proof.
func TestNumbersDoNotWrap(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("common", "", at(0)), record("a", "", at(0)))
	b.put(record("common", "", at(0)), record("b", "", at(0)))
	for _, records := range []uint64{1 << 53, 1 << 62, math.MaxInt64} {
		s, o := asked(t, a, b)
		p := script{o: o, says: inTurn(helloOf(a, func(h *wire.Hello) { h.Records, h.Cells = records, h.Cells[:1] }))}
		for _, m := range p.play(t, s, 30) {
			if more, ok := m.(*wire.More); ok && more.Cells > burst {
				t.Errorf("%d cells asked for", more.Cells)
			}
		}
		if r := s.Report(); r.Estimate < 0 || r.Differences() < 0 {
			t.Errorf("%+v", r)
		}
	}
	// Ends whose counts of held records would add up to nothing.
	s := toInitiator(t, a, b, Options{},
		&wire.Welcome{Sum: dbadapter.Sum{Records: 2, Digest: residualOf(b)}},
		&wire.Indices{Role: wire.Wanted, Indices: []dbadapter.Index{a.keys.Hasher.Index([]byte("a"))}},
		&wire.Indices{Role: wire.Lacking, Indices: []dbadapter.Index{a.keys.Hasher.Index([]byte("b"))}},
		&wire.Result{Method: wire.MethodSketch, Residual: residualOf(a, record("a", "", at(0))), Bytes: math.MaxInt64, Estimate: math.MaxInt64},
		sent(record("b", "", at(0))), &wire.End{Held: math.MaxInt64}, &wire.End{Held: math.MaxInt64})
	if r := s.Report(); r.Verified || r.ForecastBytes < 0 || r.Estimate < 0 || s.Err() != nil {
		t.Errorf("%+v, %v", r, s.Err())
	}
}

// A Hello that has no estimator is followed by one with the first cells that are
// asked for. A second one breaks the protocol, whichever the first came with.
func TestEstimatorTwice(t *testing.T) {
	for name, c := range map[string]struct {
		hello  bool
		frames []bool // that carry it
		err    error
	}{
		"with the Hello":        {true, []bool{false, false}, io.EOF},
		"with the first cells":  {false, []bool{true, false}, io.EOF},
		"never":                 {false, []bool{false, false}, io.EOF},
		"with both":             {true, []bool{true}, ErrProtocol},
		"with the cells, twice": {false, []bool{true, true}, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			for i := range 300 {
				a.put(record(fmt.Sprint("a", i), "", at(0)))
			}
			b.put(record("b", "", at(0)))
			v := a.open()
			defer v.Close()
			at := QuietCells
			s, o := asked(t, a, b)
			p := script{o: o, says: func(heard []wire.Message) wire.Message {
				if len(heard) == 0 {
					return helloOf(a, func(h *wire.Hello) {
						h.Cells = h.Cells[:at]
						if !c.hello {
							h.Estimator = nil
						}
					})
				}
				more, ok := heard[len(heard)-1].(*wire.More)
				if !ok || len(c.frames) == 0 {
					return nil // the line ends
				}
				cells, err := v.Cells(at, at+int(more.Cells))
				if err != nil {
					t.Fatal(err)
				}
				at += len(cells)
				m := &wire.Cells{Cells: cells}
				if c.frames[0] {
					m.Estimator = v.Estimator()
				}
				c.frames = c.frames[1:]
				return m
			}}
			p.play(t, s, 100)
			if !errors.Is(s.Err(), c.err) || len(c.frames) > 0 {
				t.Errorf("%v; %d frames are left", s.Err(), len(c.frames))
			}
		})
	}
}

// misread makes checksums whose times are those of no record: which of two is the
// newer is luck.
type misread struct{ dbadapter.Hasher }

func (m misread) Checksum(index dbadapter.Index, latest dbadapter.Timestamp, digests []dbadapter.Digest) dbadapter.Checksum {
	c := m.Hasher.Checksum(index, latest, digests)
	if c == 0 {
		return 0
	}
	rng := rand.New(rand.NewPCG(uint64(c), uint64(latest)))
	return m.Hasher.Checksum(index, dbadapter.Timestamp(rng.Uint64N(1<<62)), digests)
}

// The times in checksums say what is likely to be sent in vain, and nothing else: where they
// are wrong, both sides end with the newest of all records, and say so.
func TestSyncWithMisreadTimes(t *testing.T) {
	for seed := range uint64(120) {
		rng := seeded(t, seed)
		var hasher dbadapter.Hasher = misread{dbadapter.NewHasher(testSecret)}
		if seed%3 == 0 {
			hasher = storetest.Weak(hasher, 1+rng.IntN(8))
		}
		a, b := newSide(t, "a", hasher), newSide(t, "b", hasher)
		spread := int64([]time.Duration{time.Second, time.Hour}[rng.IntN(2)])
		for i := range 1 + rng.IntN(120) {
			for _, s := range []*side{a, b} {
				if rng.IntN(4) == 0 {
					continue
				}
				size := []int{20, 20, 1200}[rng.IntN(3)]
				r := record(fmt.Sprint("k", i), strings.Repeat(string(rune('a'+rng.IntN(2))), size), at(time.Duration(rng.Int64N(spread))))
				r.Version.Incarnation = rng.Uint64()
				if r.Deleted = rng.IntN(6) == 0; r.Deleted {
					r.Value = nil
				}
				s.put(r)
			}
		}
		newest := merge(a.dump(), b.dump())
		out := synced(t, a, b, Options{}, nil)
		wantEqual(t, a, b)
		if !reflect.DeepEqual(a.dump(), newest) {
			t.Errorf("seed %d: a record was lost to an older one", seed)
		}
		if !out.a.Verified || !out.b.Verified {
			t.Errorf("seed %d: not verified", seed)
		}
	}
}
