package reconcile

import (
	"bytes"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// TestSmallestClient follows "The smallest client" of docs/protocol step by step,
// with nothing but frames, the digest of a record and the proof. It takes what
// the other side has, and gives what it has.
func TestSmallestClient(t *testing.T) {
	for name, gives := range map[string][]dbadapter.Record{
		"with nothing to give": nil,
		"with records":         {record("of-a", "x", at(0)), record("changed", "new", at(time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSide(t, "b", nil)
			b.put(record("common", "", at(0)), record("changed", "old", at(0)))
			held := map[string]dbadapter.Record{}
			var digest dbadapter.Digest
			for _, r := range gives {
				held[string(r.Key)] = r
				digest = digest.Add(testKeys.Hasher.Digest(&r))
			}
			s, o := asked(t, newSide(t, "a", nil), b)
			defer s.Close()
			send := func(m wire.Message) {
				m, n, err := wire.Read(bytes.NewReader(wire.Append(nil, m)))
				if err != nil {
					t.Fatal(err)
				}
				for e := s.Next(); e.Want != WantReceive; e = s.Next() {
					t.Fatalf("the responder does not wait, it wants %+v", e)
				}
				s.Deliver(m, n)
			}
			read := func() wire.Message {
				e := s.Next()
				if e.Want != WantSend {
					t.Fatalf("the responder says nothing: %v", s.Err())
				}
				m, _, err := wire.Read(bytes.NewReader(bytes.Clone(e.Frame)))
				if err != nil {
					t.Fatal(err)
				}
				return m
			}

			hello := &wire.Hello{
				Version: wire.Version, Mapping: rateless.MappingVersion, Namespace: o.Keys.ID, Nonce: wire.Nonce{7},
				Method: wire.MethodAll, ListsMayDiffer: true, Sum: dbadapter.Sum{Records: uint64(len(gives)), Digest: digest},
			}
			hello.Proof = o.proof("initiator", o.Remote, o.Self, hello.Nonce)
			send(hello)
			welcome := read().(*wire.Welcome)
			if welcome.Proof != o.proof("responder", o.Remote, o.Self, hello.Nonce, welcome.Nonce) {
				t.Fatal("the responder does not prove itself")
			}
			if r := read().(*wire.Result); r.Method != wire.MethodAll {
				t.Fatalf("the method is %v", r.Method)
			}
			var sum dbadapter.Digest
			var came, took uint64
			for end := false; !end; {
				switch m := read().(type) {
				case *wire.Records:
					for _, r := range m.Records {
						came++
						sum = sum.Add(testKeys.Hasher.Digest(&r.Record))
						if own, ok := held[string(r.Record.Key)]; !ok || r.Record.Compare(&own) > 0 {
							held[string(r.Record.Key)] = r.Record
							took++
						}
					}
				case *wire.End:
					end = true
				}
			}
			if came != welcome.Records || sum != welcome.Digest {
				t.Fatalf("%d records came of %d", came, welcome.Records)
			}
			send(&wire.Answer{Closing: len(gives) == 0})
			if len(gives) > 0 {
				send(sent(gives...))
				send(&wire.End{Applied: took})
				if end := read().(*wire.End); end.Applied != 2 {
					t.Errorf("%d of the records given were applied", end.Applied)
				}
			}
			if e := s.Next(); e.Want != WantNothing || s.Err() != nil || !s.Report().Verified {
				t.Fatalf("%+v, %v, %+v", e, s.Err(), s.Report())
			}
			all := b.dump()
			if len(all) != len(held) {
				t.Fatalf("%d records against %d", len(all), len(held))
			}
			for _, r := range all {
				if own := held[string(r.Key)]; r.Compare(&own) != 0 {
					t.Errorf("%q differs", r.Key)
				}
			}
		})
	}
}
