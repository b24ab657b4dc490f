package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// directed is a vector that a test has written, rather than the generator.
func directed(t *testing.T, w *world, side int, stranger bool, stream []byte) *vector {
	t.Helper()
	v := &vector{side: side, stranger: stranger, stream: stream}
	v.aim(t, w)
	return v
}

// aim delivers a directed vector to a side of the world.
func (v *vector) aim(t *testing.T, w *world) {
	t.Helper()
	v.d = damager{rng: rand.New(rand.NewPCG(1, 1)), w: w}
	v.inTold = map[dbadapter.Index]wire.Role{}
	v.truths = map[dbadapter.Digest]*frozen{w.sides[0].digest(): w.sides[0], w.sides[1].digest(): w.sides[1]}
	if err := v.run(); err != nil {
		t.Fatalf("%s, side %d: %v", w.name, v.side, err)
	}
}

// The frames of a whole earlier session, said again: nothing comes of them.
func TestReplayedSessions(t *testing.T) {
	for _, w := range worlds(t, 1) {
		// An initiator has drawn a nonce that the old Welcome does not prove,
		// not even where the peer itself says it.
		for _, itself := range []bool{true, false} {
			v := &vector{itself: itself, stranger: true, side: 0, stream: bytes.Join(w.frames[1], nil)}
			if v.aim(t, w); v.session.Err() != ErrDenied || v.trial.reached > 0 || v.session.Report().WireBytesReceived != int64(len(w.frames[1][0])) {
				t.Errorf("%s: the initiator ended with %v, %d records at the admission; said by the peer itself: %v", w.name, v.session.Err(), v.trial.reached, itself)
			}
		}
		// A responder hears that the proof is another peer's, which lacks the
		// secret.
		o := w.options(1, wire.Nonce{9})
		o.Remote = []byte("mallory")
		replica := &trial{frozen: w.sides[1], applied: map[string]dbadapter.Record{}}
		s := Respond(opening(replica), o)
		p := script{o: o, stranger: true, says: replay(t, w.frames[0])}
		heard := p.play(t, s, 20)
		if s.Err() != ErrDenied || len(heard) != 1 || replica.reached > 0 {
			t.Errorf("%s: the responder ended with %v after %d messages", w.name, s.Err(), len(heard))
		}
		// Under the right name, but with another nonce than the one proved.
		o = w.options(1, wire.Nonce{9})
		replica = &trial{frozen: w.sides[1], applied: map[string]dbadapter.Record{}}
		s = Respond(opening(replica), o)
		anew := replay(t, w.frames[0])
		p = script{o: o, stranger: true, says: func(heard []wire.Message) wire.Message {
			m := anew(heard)
			if h, ok := m.(*wire.Hello); ok {
				h.Nonce[0]++
			}
			return m
		}}
		if heard := p.play(t, s, 20); s.Err() != ErrDenied || len(heard) != 1 || replica.reached > 0 {
			t.Errorf("%s: with another nonce, the responder ended with %v after %d messages", w.name, s.Err(), len(heard))
		}
		// Said by the peer itself they are nothing new to a responder: the
		// channel is fresh, and what was true of its set then is checked as
		// ever.
		again := &vector{itself: true, stranger: true, side: 1, stream: bytes.Join(w.frames[0], nil)}
		if again.aim(t, w); again.session.Report().Rejected > 0 {
			t.Errorf("%s: %+v", w.name, again.session.Report())
		}
	}
}

// The two nonces, the names and the role are each part of a proof: with one of
// them changed it is another.
func TestProofsAreBound(t *testing.T) {
	o := Options{Keys: testKeys}
	other := Options{Keys: DeriveKeys(dbadapter.Secret{9}, nil)}
	a, b, n, m := []byte("a"), []byte("b"), wire.Nonce{1}, wire.Nonce{2}
	proofs := map[string]wire.Proof{
		"it":                        o.proof("responder", a, b, n, m),
		"another secret":            other.proof("responder", a, b, n, m),
		"another role":              o.proof("initiator", a, b, n, m),
		"the names exchanged":       o.proof("responder", b, a, n, m),
		"the names cut elsewhere":   o.proof("responder", []byte("ab"), nil, n, m),
		"the first nonce changed":   o.proof("responder", a, b, wire.Nonce{15: 1}, m),
		"the second nonce changed":  o.proof("responder", a, b, n, wire.Nonce{15: 1}),
		"the nonces exchanged":      o.proof("responder", a, b, m, n),
		"without the second nonce":  o.proof("responder", a, b, n),
		"without either nonce":      o.proof("responder", a, b),
		"the role longer by a name": o.proof("respondera", nil, b, n, m),
	}
	seen := map[wire.Proof]string{}
	for what, p := range proofs {
		if same, ok := seen[p]; ok {
			t.Errorf("one proof: %s, and %s", what, same)
		}
		seen[p] = what
	}
}

// replay says the frames as they were recorded.
func replay(t *testing.T, frames [][]byte) func([]wire.Message) wire.Message {
	t.Helper()
	var all []wire.Message
	for _, f := range frames {
		m, _, err := wire.Read(bytes.NewReader(f))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return inTurn(all...)
}

// A peer without the secret sends back what it heard: the session's own
// frames, its digest, its proof.
func TestReflections(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("k", "", at(0)))
	b.put(record("l", "", at(0)))
	for name, c := range map[string]struct {
		says func(heard []wire.Message) wire.Message
		want error
	}{
		"its own frames": {func(heard []wire.Message) wire.Message { return heard[len(heard)-1] }, ErrProtocol},
		"its digest and proof": {func(heard []wire.Message) wire.Message {
			h := heard[0].(*wire.Hello)
			return &wire.Welcome{Nonce: h.Nonce, Proof: h.Proof, Sum: dbadapter.Sum{Records: h.Records, Digest: h.Digest}}
		}, ErrDenied},
		"in sync already": {func([]wire.Message) wire.Message { return &wire.Same{} }, ErrProtocol},
	} {
		s, o := asking(t, a, b)
		p := script{o: o, stranger: true, says: c.says}
		p.play(t, s, 10)
		if !errors.Is(s.Err(), c.want) || s.Report().Verified {
			t.Errorf("%s, to the initiator: %v", name, s.Err())
		}
	}
	// At the responder: its own Welcome, and its proof in a Hello.
	s, o := asked(t, a, b)
	proof := o.proof("responder", o.Remote, o.Self, wire.Nonce{7}, o.Nonce)
	p := script{o: o, stranger: true, says: inTurn(helloOf(a, func(h *wire.Hello) { h.Proof = proof }))}
	if heard := p.play(t, s, 10); !errors.Is(s.Err(), ErrDenied) || len(heard) != 1 {
		t.Errorf("its proof, to the responder: %v after %d messages", s.Err(), len(heard))
	}
	s, o = asked(t, a, b)
	said := false
	p = script{o: o, says: func(heard []wire.Message) wire.Message {
		if !said {
			said = true
			return helloOf(a, nil)
		}
		return heard[0]
	}}
	if p.play(t, s, 10); !errors.Is(s.Err(), ErrProtocol) {
		t.Errorf("its Welcome, to the responder: %v", s.Err())
	}
}

// Another version, lower or higher, is answered with ours, whatever follows.
func TestUnknownVersions(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	for _, h := range []*wire.Hello{{Version: 0}, {Version: wire.Version + 1}, {Version: 255}, helloOf(a, func(h *wire.Hello) { h.Mapping = 0 }), helloOf(a, func(h *wire.Hello) { h.Mapping = 9 })} {
		s, o := asked(t, a, b)
		p := script{o: o, stranger: true, says: inTurn(h)}
		heard := p.play(t, s, 10)
		if len(heard) != 1 || !errors.Is(s.Err(), ErrVersion) {
			t.Fatalf("version %d: %v after %d messages", h.Version, s.Err(), len(heard))
		}
		if r, ok := heard[0].(*wire.Refuse); !ok || r.Code != wire.CodeVersion || r.Version != wire.Version {
			t.Errorf("version %d was answered with %+v", h.Version, heard[0])
		}
	}
	for _, version := range []byte{0, 1, 3, 255} {
		s, o := asking(t, a, b)
		p := script{o: o, stranger: true, says: inTurn(&wire.Refuse{Code: wire.CodeVersion, Version: version})}
		heard := p.play(t, s, 10)
		if !errors.Is(s.Err(), ErrVersion) || !strings.Contains(s.Err().Error(), fmt.Sprint("the peer version ", version)) || len(heard) != 1 {
			t.Errorf("refused by version %d: %v", version, s.Err())
		}
	}
	s, o := asking(t, a, b)
	p := script{o: o, stranger: true, says: inTurn(&wire.Refuse{Code: wire.CodeVersion, Version: wire.Version})}
	if p.play(t, s, 10); !errors.Is(s.Err(), ErrVersion) || !strings.Contains(s.Err().Error(), "map records to cells in different ways") {
		t.Errorf("refused for the mapping: %v", s.Err())
	}
}

// A record that was deleted since does not come back, from any sender.
func TestDeletedStaysDeleted(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	old := record("k", "once", at(0))
	gone := record("k", "", at(time.Hour))
	gone.Deleted, gone.Value = true, nil
	a.put(gone, record("common", "", at(0)))
	before := a.dump()
	// Told as newer by the responder.
	k := a.keys.Hasher.Index(old.Key)
	s := toInitiator(t, a, b, Options{}, &wire.Welcome{Sum: dbadapter.Sum{Records: 2, Digest: dbadapter.Digest{1}}}, &wire.Indices{Role: wire.Newer, Indices: []dbadapter.Index{k}},
		&wire.Result{Method: wire.MethodSketch, Residual: residualOf(a, gone)}, sent(old), &wire.End{})
	if !errors.Is(s.Err(), ErrNotVerified) || s.Report().Applied > 0 || !reflect.DeepEqual(a.dump(), before) {
		t.Errorf("at the initiator: %v, %+v", s.Err(), a.dump())
	}
	// Told as newer by the initiator's cells, and sent in place of it.
	b.put(old, record("common", "", at(0)))
	later := record("k", "later", at(2*time.Hour))
	c := newSide(t, "c", nil)
	c.put(later, record("common", "", at(0)))
	s = toResponder(t, c, a, helloOf(c, nil), &wire.Answer{Residual: residualOf(a, gone)}, sent(old), &wire.End{})
	if !errors.Is(s.Err(), ErrNotVerified) || s.Report().Applied > 0 || !reflect.DeepEqual(a.dump(), before) {
		t.Errorf("at the responder: %v, %+v", s.Err(), a.dump())
	}
	// An honest old copy takes the deletion.
	out := run(t, b, a, Options{}, nil)
	if out.errA != nil || !out.a.Verified || !reflect.DeepEqual(b.dump(), before) {
		t.Errorf("an old copy holds %+v, %v", b.dump(), out.errA)
	}
}

// A version that is adopted, since the content is here already, passes the
// admission as any record does.
func TestAdoptionPassesTheDoor(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	ours := record("k", strings.Repeat("x", 5000), at(0))
	a.put(ours)
	a.refuseAll()
	future := ours
	future.Version = at(1000 * time.Hour)
	s := toInitiator(t, a, b, Options{}, &wire.Welcome{Sum: dbadapter.Sum{Records: 1, Digest: dbadapter.Digest{1}}}, &wire.Offers{Offers: []wire.Offer{offerOf(&future)}},
		&wire.Result{Method: wire.MethodSketch, Residual: residualOf(a, ours)}, &wire.End{}, &wire.End{})
	if r := s.Report(); s.Err() != nil || r.Verified || r.Rejected != 1 || a.dump()[0].Version != ours.Version {
		t.Errorf("%v, %+v", s.Err(), r)
	}
}

// groups are the kinds that may stand in one another's place: what else comes
// breaks the protocol.
var groups = [][]wire.Kind{
	{wire.KindHello},
	{wire.KindWelcome},
	{wire.KindSame},
	{wire.KindCells},
	{wire.KindMore, wire.KindIndices, wire.KindOffers, wire.KindResult},
	{wire.KindAnswer, wire.KindHashes},
	{wire.KindListing},
	{wire.KindMarks},
	{wire.KindRecords, wire.KindEnd, wire.KindIndices},
	{wire.KindAnswer, wire.KindHeads},
	{wire.KindOffers, wire.KindEnd},
}

func mayStandFor(expected, kind wire.Kind) bool {
	for _, g := range groups {
		if bytes.IndexByte(kinds(g), byte(expected)) >= 0 && bytes.IndexByte(kinds(g), byte(kind)) >= 0 {
			return true
		}
	}
	return false
}

func kinds(g []wire.Kind) (b []byte) {
	for _, k := range g {
		b = append(b, byte(k))
	}
	return b
}

// A message of each kind, taken from honest sessions, comes at each point of
// each session, to each side.
func TestEveryMessageAtEveryPoint(t *testing.T) {
	pool := worlds(t, 1)
	every := map[wire.Kind][]byte{wire.KindRefuse: wire.Append(nil, &wire.Refuse{Code: wire.CodeLimit})}
	for _, w := range pool {
		for _, f := range append(w.frames[0], w.frames[1]...) {
			if m, _, err := wire.Read(bytes.NewReader(f)); err == nil {
				every[m.Kind()] = f
			}
		}
	}
	for kind := wire.KindHello; kind <= wire.KindHeads; kind++ {
		if every[kind] == nil && kind != wire.KindWorking && kind != wire.KindSums {
			t.Fatalf("no message of kind %d", kind)
		}
	}
	broken := 0
	for _, w := range pool {
		for side := range 2 {
			frames := w.frames[1-side]
			for at, next := range frames {
				expected, _, err := wire.Read(bytes.NewReader(next))
				if err != nil {
					t.Fatal(err)
				}
				for kind, frame := range every {
					stream := append(bytes.Join(frames[:at], nil), append(bytes.Clone(frame), bytes.Join(frames[at:], nil)...)...)
					v := directed(t, w, side, false, stream)
					want := ErrProtocol
					switch {
					case kind == wire.KindRefuse:
						want = ErrLimit
					case mayStandFor(expected.Kind(), kind):
						continue // checked as every vector is
					}
					if err := v.session.Err(); !errors.Is(err, want) || v.session.Report().Verified {
						t.Errorf("%s, side %d: kind %d before kind %d: %v", w.name, side, kind, expected.Kind(), err)
					}
					broken++
				}
			}
		}
	}
	if broken < 500 {
		t.Errorf("only %d messages out of turn", broken)
	}
}

// A stream that ends at any byte ends the session with an error, and nothing
// is called verified.
func TestStreamsCutAtEachByte(t *testing.T) {
	for _, w := range worlds(t, 1) {
		for side := range 2 {
			stream := bytes.Join(w.frames[1-side], nil)
			for cut := 0; cut < len(stream); cut += 1 + cut/80 {
				v := directed(t, w, side, false, stream[:cut])
				if err := v.session.Err(); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || v.session.Report().Verified {
					t.Fatalf("%s, side %d, cut after %d of %d bytes: %v", w.name, side, cut, len(stream), err)
				}
			}
		}
	}
}
