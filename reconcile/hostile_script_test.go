package reconcile

import (
	"bytes"
	"io"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// script is a peer that says what a test wrote for it, whatever it hears.
type script struct {
	// o are the options of the session that listens.
	o Options
	// of, if not nil, is the side of an initiator that listens: a Result is made to fit
	// what that holds.
	of *side
	// says is called for each message that the session waits for, with all
	// that the session has sent; nil ends the line.
	says func(heard []wire.Message) wire.Message
	// stranger leaves proofs as they are; else they are made good.
	stranger bool
}

// play runs the session against the script and returns what it sent. It fails
// the test if the session does not end within the events given.
func (p *script) play(t *testing.T, s *Session, events int) (heard []wire.Message) {
	t.Helper()
	defer s.Close()
	var nonce, theirs wire.Nonce
	told := map[dbadapter.Index]bool{}
	for range events {
		switch e := s.Next(); e.Want {
		case WantNothing:
			return heard
		case WantSend:
			m, _, err := wire.Read(bytes.NewReader(slices.Clone(e.Frame)))
			if err != nil {
				t.Fatalf("the session sent a malformed %T: %v", e.Message, err)
			}
			if h, ok := m.(*wire.Hello); ok {
				nonce = h.Nonce
			}
			heard = append(heard, m)
		case WantReceive:
			m := p.says(heard)
			if m == nil {
				s.Fail(io.EOF)
				continue
			}
			if !p.stranger {
				prove(m, p.o, nonce)
			}
			switch m := m.(type) {
			case *wire.Welcome:
				theirs = m.Nonce
			case *wire.Indices:
				for _, i := range m.Indices {
					told[i] = true
				}
			case *wire.Offers:
				for n := range m.Offers {
					told[p.o.Keys.Hasher.Index(m.Offers[n].Record.Key)] = true
				}
			case *wire.Result:
				if p.of != nil {
					m.Told = p.of.told(p.o, nonce, theirs, maps.Keys(told))
				}
			}
			m, n, err := wire.Read(bytes.NewReader(wire.Append(nil, m)))
			if err != nil {
				s.Fail(err)
				continue
			}
			s.Deliver(m, n)
		}
	}
	t.Fatalf("the session does not end within %d events", events)
	return nil
}

// prove puts the proof into a Hello or a Welcome that a member would make for
// the session with these options; nonce is the one of the session's Hello.
func prove(m wire.Message, o Options, nonce wire.Nonce) {
	switch m := m.(type) {
	case *wire.Hello:
		m.Proof = o.proof("initiator", o.Remote, o.Self, m.Nonce)
	case *wire.Welcome:
		m.Proof = o.proof("responder", o.Self, o.Remote, nonce, m.Nonce)
	}
}

// inTurn says messages one after the other, then ends the line.
func inTurn(messages ...wire.Message) func([]wire.Message) wire.Message {
	return func([]wire.Message) wire.Message {
		if len(messages) == 0 {
			return nil
		}
		m := messages[0]
		messages = messages[1:]
		return m
	}
}

// asked begins a session at side b and returns it with its options, as asked
// by a.
func asked(t *testing.T, a, b *side) (*Session, Options) {
	t.Helper()
	v := b.open()
	t.Cleanup(func() { v.Close() })
	o := b.options(a, Options{})
	return Respond(opening(v), o), o
}

// asking begins a session at side a, with b.
func asking(t *testing.T, a, b *side) (*Session, Options) {
	t.Helper()
	v := a.open()
	t.Cleanup(func() { v.Close() })
	o := a.options(b, Options{})
	return Initiate(v, o), o
}

// toResponder is a session at b that has heard the messages, as of a.
func toResponder(t *testing.T, a, b *side, messages ...wire.Message) *Session {
	t.Helper()
	s, o := asked(t, a, b)
	(&script{o: o, says: inTurn(messages...)}).play(t, s, 100)
	return s
}

// toInitiator is a session at a that has heard the messages, as of b.
func toInitiator(t *testing.T, a, b *side, o Options, messages ...wire.Message) *Session {
	t.Helper()
	v := a.open()
	defer v.Close()
	o = a.options(b, o)
	s := Initiate(v, o)
	(&script{o: o, of: a, says: inTurn(messages...)}).play(t, s, 100)
	return s
}

// helloOf is what a would say to begin a sync, but for the proof.
func helloOf(a *side, edit func(*wire.Hello)) *wire.Hello {
	digest, records := a.state()
	v := a.open()
	defer v.Close()
	cells, err := v.Cells(0, FirstCells)
	if err != nil {
		a.t.Fatal(err)
	}
	h := &wire.Hello{
		Version: wire.Version, Mapping: rateless.MappingVersion, Namespace: a.keys.ID, Nonce: wire.Nonce{7},
		Sum: dbadapter.Sum{Records: records, Digest: digest}, Estimator: v.Estimator(), Cells: cells,
	}
	if edit != nil {
		edit(h)
	}
	return h
}

// told is the hash that fits what an initiator holds.
func (s *side) told(o Options, ours, theirs wire.Nonce, told iter.Seq[dbadapter.Index]) uint64 {
	snap, err := s.ns.Snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	defer snap.Close()
	key := rangeKey(o.proof("ranges", o.Self, o.Remote, ours, theirs))
	_, records := s.state()
	return toldOf(&key, s.keys.Hasher, records, told, nil, func(i dbadapter.Index) []dbadapter.Hashed {
		held, err := snap.Bucket(i)
		if err != nil {
			s.t.Fatal(err)
		}
		return held
	})
}

// residualOf is a's digest without the records given.
func residualOf(a *side, without ...dbadapter.Record) dbadapter.Digest {
	r, _ := a.state()
	for i := range without {
		r = r.Sub(a.keys.Hasher.Digest(&without[i]))
	}
	return r
}

func sent(records ...dbadapter.Record) *wire.Records {
	m := &wire.Records{}
	for _, r := range records {
		m.Records = append(m.Records, wire.Sent{Record: r})
	}
	return m
}
