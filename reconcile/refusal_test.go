package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Whichever leg a record travels on, its sender learns that it was refused,
// does not call the sets equal, and does not send it again.
func TestRefusalsAreToldOnEveryLeg(t *testing.T) {
	weak := storetest.Weak(dbadapter.NewHasher(testSecret), 1)
	for name, c := range map[string]struct {
		hasher dbadapter.Hasher
		fill   func(a, b *side)
	}{
		"all": {nil, func(_, b *side) { b.put(record("k", "v", at(0))) }},
		"first": {nil, func(a, b *side) {
			a.put(record("common", "", at(0)))
			b.put(record("common", "", at(0)), record("k", "v", at(0)))
		}},
		"fetched offer": {nil, func(a, b *side) {
			a.put(record("k", "old", at(0)))
			b.put(record("k", strings.Repeat("x", 5000), at(time.Hour)))
		}},
		"sent back": {weak, func(a, b *side) {
			a.put(record("k1", "old", at(time.Hour)))
			b.put(record("k2", "x", at(0)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "a", c.hasher), newSide(t, "b", c.hasher)
			c.fill(a, b)
			a.refuseAll()
			for n := range 2 {
				out := synced(t, a, b, Options{}, nil)
				if out.a.Verified || out.b.Verified || out.b.Rejected == 0 {
					t.Errorf("sync %d: verified %v and %v, %d rejected as the sender knows; %v", n, out.a.Verified, out.b.Verified, out.b.Rejected, out.log)
				}
			}
			if len(b.declined.list()) == 0 {
				t.Error("the sender remembers nothing")
			}
		})
	}
}

// A record that is not sent since it was refused before keeps both sides from
// calling the sets equal, also where no side has asked for it: here it answers
// an older one that the responder sent on suspicion.
func TestWithheldAnswerIsTold(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	common := record("common", "", at(0))
	a.put(common, record("k", "new", at(time.Second)))
	b.put(common, record("k", "old", at(0)))
	b.refuseAll()
	for n := range 2 {
		out := synced(t, a, b, Options{}, nil)
		if out.a.Verified || out.b.Verified || out.a.Rejected == 0 || out.b.Rejected == 0 {
			t.Errorf("sync %d: verified %v and %v, rejected %d and %d; %v", n, out.a.Verified, out.b.Verified, out.a.Rejected, out.b.Rejected, out.log)
		}
	}
}

// The responder does not call a sync verified before it knows that what it
// sent last has arrived.
func TestLastLegIsAcknowledged(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("k", "old", at(0)))
	b.put(record("k", strings.Repeat("x", 5000), at(time.Hour)))
	out := run(t, a, b, Options{}, func(initiator bool, m wire.Message) wire.Message {
		if _, ok := m.(*wire.Records); ok && !initiator {
			return nil
		}
		return m
	})
	if out.errA == nil || out.errB == nil || out.b.Verified {
		t.Errorf("ended with %v and %v, verified %v at the sender of what was lost", out.errA, out.errB, out.b.Verified)
	}
}

// welcomed begins a session with a peer that is a member, and announces what
// the test wants.
func welcomed(t *testing.T, a, b *side, w wire.Welcome) *Session {
	t.Helper()
	v := a.open()
	t.Cleanup(func() { v.Close() })
	o := a.options(b, Options{})
	s := Initiate(v, o)
	t.Cleanup(s.Close)
	w.Proof = o.proof("responder", o.Self, o.Remote, o.Nonce, w.Nonce)
	for e := s.Next(); e.Want != WantReceive; e = s.Next() {
	}
	s.Deliver(&w, 1)
	return s
}

// A peer that sends more than it announced is stopped, and what it has refused
// of it costs bounded memory.
func TestEndlessRecords(t *testing.T) {
	batch := make([]wire.Sent, wire.BatchRecords)
	for i := range batch {
		batch[i].Record = record("k", "", at(0))
		batch[i].Record.Deleted, batch[i].Record.Value = true, nil
	}
	for name, c := range map[string]struct {
		method wire.Method
		has    bool
	}{"all": {wire.MethodAll, false}, "sketch": {wire.MethodSketch, true}} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			if c.has {
				a.put(record("other", "", at(0)))
			}
			a.refuseAll()
			s := welcomed(t, a, b, wire.Welcome{Sum: dbadapter.Sum{Records: 1, Digest: dbadapter.Digest{1}}})
			digest, _ := a.state()
			told := []dbadapter.Index{a.keys.Hasher.Index([]byte("k"))}
			o := a.options(b, Options{})
			messages := []wire.Message{&wire.Result{Method: c.method, Residual: digest, Told: a.told(o, o.Nonce, wire.Nonce{}, slices.Values(told))}}
			if c.method == wire.MethodSketch {
				messages = []wire.Message{&wire.Indices{Role: wire.Lacking, Indices: []dbadapter.Index{a.keys.Hasher.Index([]byte("k"))}}, messages[0]}
			}
			for range 50 {
				messages = append(messages, &wire.Records{Records: batch})
			}
			for _, m := range messages {
				if e := s.Next(); e.Want != WantReceive {
					break
				}
				s.Deliver(m, 1)
			}
			for s.Next().Want == WantSend {
			}
			if !errors.Is(s.Err(), ErrProtocol) || s.Report().Rejected > wire.BatchRecords {
				t.Errorf("after %d records: %v", s.Report().Rejected, s.Err())
			}
		})
	}
}

// A peer that sends other contents than it announced does not pass by the
// method all.
func TestAllProvesItself(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	b.put(record("k", "v", at(0)), record("l", "v", at(0)))
	out := run(t, a, b, Options{}, func(initiator bool, m wire.Message) wire.Message {
		if r, ok := m.(*wire.Records); ok && !initiator {
			r.Records = r.Records[1:]
		}
		return m
	})
	if !errors.Is(out.errA, ErrNotVerified) || out.a.Verified || out.b.Verified {
		t.Errorf("with a record left out: %v, verified %v and %v", out.errA, out.a.Verified, out.b.Verified)
	}
	a.prefix, b.prefix = []byte("p/"), []byte("p/")
	b.put(record("p/1", "", at(0)))
	out = run(t, a, b, Options{}, func(initiator bool, m wire.Message) wire.Message {
		if r, ok := m.(*wire.Records); ok && !initiator {
			r.Records[0].Record.Key = []byte("secret")
		}
		return m
	})
	if !errors.Is(out.errA, ErrProtocol) {
		t.Errorf("with a key outside the prefix: %v", out.errA)
	}
	for _, r := range a.dump() {
		if string(r.Key) == "secret" {
			t.Error("a key outside the prefix was let in")
		}
	}
}

// A dry run where one side is empty has compared nothing.
func TestDryAllIsNotVerified(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	b.put(record("k", "v", at(0)))
	out := run(t, a, b, Options{DryRun: true}, nil)
	if out.errA != nil || out.a.Verified || out.a.MissingHere != 1 {
		t.Errorf("%v %+v", out.errA, out.a)
	}
}

// Requests for cells that bring nothing do not go on for ever.
func TestEndlessRequests(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("k", "v", at(0)))
	s := welcomed(t, a, b, wire.Welcome{Sum: dbadapter.Sum{Records: 1, Digest: dbadapter.Digest{1}}})
	for n := 0; ; n++ {
		e := s.Next()
		if e.Want == WantNothing {
			break
		}
		if e.Want == WantReceive {
			s.Deliver(&wire.More{Cells: 1}, 1)
		}
		if n > 10*maxRounds {
			t.Fatal("still answering")
		}
	}
	if !errors.Is(s.Err(), ErrProtocol) {
		t.Error(s.Err())
	}
}

// Two records of one index and one checksum are both declined: the sync goes on, names
// both, and brings others of the same pair. What was refused is not taken for one of
// those, and is not sent again.
func TestRefusedRecordsOfOnePair(t *testing.T) {
	h := coarse{storetest.Weak(dbadapter.NewHasher(testSecret), 0)}
	a, b := newSide(t, "a", h), newSide(t, "b", h)
	a.refuseBad(wire.ReasonSignature)
	holds := func(key string) bool {
		for _, r := range a.dump() {
			if string(r.Key) == key {
				return true
			}
		}
		return false
	}
	dead := record("bad two", "", at(time.Second))
	dead.Deleted = true
	a.put(record("common", "", at(0)))
	b.put(record("common", "", at(0)), record("bad one", "x", at(4*time.Second)), dead, record("good", "x", at(2*time.Second)))
	for i := range 8 {
		b.put(record(fmt.Sprint("a good ", i), "x", at(2*time.Second)))
	}
	out := synced(t, a, b, Options{}, nil)
	if out.b.DeclinedThere[wire.ReasonSignature] != 2 || out.a.DeclinedHere[wire.ReasonSignature] != 2 || !holds("good") {
		t.Errorf("%+v", out.b)
	}
	b.put(record("later", "x", at(3*time.Second)))
	if out = run(t, a, b, Options{}, nil); out.errA != nil || out.errB != nil || !holds("later") || out.b.DeclinedThere[wire.ReasonSignature] != 2 || out.b.Sent != 11 {
		t.Fatal(out.errA, out.errB, out.a, out.b)
	}
}

// Of several records that live, of one index and one checksum, a side declines two for its
// floor: the other knows which, in this sync and in the next one.
func TestTwinsDeclinedForTheFloor(t *testing.T) {
	h := coarse{storetest.Weak(dbadapter.NewHasher(testSecret), 0)}
	a, b := newSide(t, "a", h), newSide(t, "b", h)
	a.refuseBad(wire.ReasonFloor)
	a.put(record("common", "", at(0)))
	b.put(record("common", "", at(0)), record("bad one", "x", at(time.Second)), record("a good one", "x", at(time.Second)), record("bad two", "x", at(time.Second)))
	for n := range 2 {
		out := synced(t, a, b, Options{}, nil)
		var keys []string
		for _, d := range out.b.DeclinedForFloor {
			keys = append(keys, string(d.Key))
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{"bad one", "bad two"}) || out.b.Sent != 4-2*n {
			t.Errorf("sync %d: %d are sent, and %q declined", n, out.b.Sent, keys)
		}
	}
}
