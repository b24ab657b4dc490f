package reconcile

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// FuzzSessions feeds both sides whatever frames the fuzzer finds: no panic, no
// unbounded work, nothing applied that was not asked for.
func FuzzSessions(f *testing.F) {
	var honest []byte
	a, b := diverged(f, rand.New(rand.NewPCG(1, 1)), 30, 5, 5, time.Hour, nil)
	run(f, a, b, Options{DryRun: true}, func(_ bool, m wire.Message) wire.Message {
		honest = wire.Append(honest, m)
		return m
	})
	f.Add(true, honest)
	f.Add(false, honest)
	// A sync that moves records, and one that the initiator refuses.
	a.declineKeys()
	a.put(tombstone("a gone", at(0)))
	b.put(tombstone("floor gone", at(0)), tombstone("writer gone", at(0)))
	for _, err := range []error{nil, &RemovedError{[][]byte{[]byte("statement"), []byte("another")}}} {
		moved := []byte{}
		a.heeds = func(wire.Greeting) error { return err }
		run(f, a, b, Options{}, func(_ bool, m wire.Message) wire.Message {
			moved = wire.Append(moved, m)
			return m
		})
		f.Add(true, moved)
		f.Add(false, moved)
	}
	f.Fuzz(func(t *testing.T, initiator bool, stream []byte) {
		local, _, o := sets(rand.New(rand.NewPCG(1, 1)), 30, 5, 5, time.Hour)
		o.Self, o.Remote = []byte("a"), []byte("b")
		o.Admit = admitting(local.Apply)
		var s *Session
		if initiator {
			s = Initiate(local, o)
		} else {
			s = Respond(opening(local), o)
		}
		defer s.Close()
		in := bytes.NewReader(stream)
		var nonce wire.Nonce
		before := int(local.Sum().Records)
		for range 10_000 {
			switch e := s.Next(); e.Want {
			case WantNothing:
				if int(local.Sum().Records) > before+len(stream) {
					t.Fatal("more records than bytes")
				}
				return
			case WantSend:
				if h, ok := e.Message.(*wire.Hello); ok {
					nonce = h.Nonce
				}
			case WantReceive:
				m, n, err := wire.Read(in)
				if err != nil {
					s.Fail(err)
					continue
				}
				// The fuzzer cannot find a proof; give it one.
				switch m := m.(type) {
				case *wire.Hello:
					m.Namespace = o.Keys.ID
					m.Proof = o.proof("initiator", o.Remote, o.Self, m.Nonce)
				case *wire.Welcome:
					m.Proof = o.proof("responder", o.Self, o.Remote, nonce, m.Nonce)
				}
				s.Deliver(m, n)
			}
		}
		t.Fatal("the session does not end")
	})
}
