package reconcile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
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
