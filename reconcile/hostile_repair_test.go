package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Whatever a peer says in a proof by range, the session ends with a named error and
// nothing that was not asked for is applied; an honest one would be verified.
func TestHostileRepairs(t *testing.T) {
	const initiator, responder = true, false
	for name, c := range map[string]struct {
		from  bool // who lies
		spoil func(wire.Message) wire.Message
		want  error // of the other side
	}{
		"hashes of some groups":          {initiator, spoiling(func(h *wire.Hashes) { h.Groups, h.Hashes = h.Groups>>1, h.Hashes[1:] }), ErrProtocol},
		"hashes twice":                   {initiator, replacing(wire.KindAnswer, &wire.Hashes{Groups: 1<<64 - 1, Hashes: make([]uint64, dbadapter.RangeGroups)}), ErrProtocol},
		"hashes of groups for an answer": {responder, spoiling(func(h *wire.Hashes) { h.Groups, h.Hashes = 3, []uint64{1, 2} }), ErrProtocol},
		"all groups differ":              {responder, spoiling(func(h *wire.Hashes) { h.Groups, h.Hashes = 1<<64-1, make([]uint64, dbadapter.Ranges) }), ErrProtocol}, // what it told of them is not told again
		"a range of a group that agrees": {initiator, spoiling(func(m *wire.Listing) {
			if len(m.Ranges) > 0 {
				m.Left = append(m.Left, (m.Ranges[len(m.Ranges)-1]+dbadapter.RangesInGroup)%dbadapter.Ranges)
			}
		}), ErrProtocol},
		"a range listed and left out": {initiator, spoiling(func(m *wire.Listing) { m.Left = m.Ranges }), ErrProtocol},
		"vast marks":                  {initiator, spoiling(func(m *wire.Listing) { m.Marks = maxMarks + 1 }), ErrProtocol},
		"more marks than told":        {initiator, spoiling(func(m *wire.Listing) { m.Marks-- }), ErrProtocol},
		"fewer marks than told":       {initiator, spoiling(func(m *wire.Listing) { m.Marks++ }), errLine},
		"a responder that lists":      {responder, spoiling(func(m *wire.Listing) { m.Ranges = []dbadapter.Range{1} }), ErrProtocol},
		"a listing of another set":    {responder, spoiling(func(m *wire.Listing) { m.Sum.Digest[0]++ }), ErrNotVerified},
		"a mark of no range listed":   {initiator, spoiling(func(l *wire.Marks) { l.Marks[0].Index = l.Marks[0].Index%(1<<30) + 1 }), ErrProtocol},
		"a mark of other records": {initiator, spoiling(func(l *wire.Marks) {
			for n := range l.Marks {
				l.Marks[n].Hash++
			}
		}), ErrNotVerified},
		"an index of no range listed": {responder, func() func(wire.Message) wire.Message {
			listed := false
			return func(m wire.Message) wire.Message {
				switch m := m.(type) {
				case *wire.Listing:
					listed = true
				case *wire.Indices:
					if listed {
						m.Indices[0] = m.Indices[0]%(1<<30) + 1
					}
				}
				return m
			}
		}(), ErrProtocol},
		"records without end, of a plan that is not proved": {responder, spoiling(func(r *wire.Records) {
			for len(r.Records) < wire.BatchRecords {
				r.Records = append(r.Records, r.Records[0])
			}
		}), ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			h := coarse{dbadapter.NewHasher(testSecret)}
			a, b := newSide(t, "a", h), newSide(t, "b", h)
			for i := range 30 {
				r := record(fmt.Sprint("k", i), "one", at(0))
				a.put(r)
				if i < 3 {
					r = record(fmt.Sprint("k", i), "two", at(time.Duration(i-1)*time.Second))
				}
				b.put(r)
			}
			a.put(record("of a", "", at(0)))
			b.put(record("of b", "", at(0)))
			out := run(t, a, b, Options{}, func(from bool, m wire.Message) wire.Message {
				if from == c.from {
					return c.spoil(m)
				}
				return m
			})
			got, ended := out.errB, out.b
			if c.from == responder {
				got, ended = out.errA, out.a
			}
			if !errors.Is(got, c.want) || ended.Verified {
				t.Errorf("the honest side ended with %v, %+v", got, ended)
			}
		})
	}
}

// A listing takes memory from the session's budget, at both sides.
func TestListingsAskTheBudget(t *testing.T) {
	h := coarse{dbadapter.NewHasher(testSecret)}
	for poor := range 2 {
		a, b := newSide(t, "a", h), newSide(t, "b", h)
		for i := range 5000 {
			a.put(record(fmt.Sprint("k", i), "one", at(0)))
			b.put(record(fmt.Sprint("k", i), "two", at(time.Second)))
		}
		sides := [2]*side{a, b}
		sides[poor].budget = NewBudget(baseBytes + cellBytes*FirstCells + hashesBytes + markBytes*markStep)
		out := run(t, a, b, Options{}, nil)
		if err := [2]error{out.errA, out.errB}[poor]; !errors.Is(err, ErrBusy) {
			t.Errorf("side %d ended with %v", poor, err)
		}
	}
}

// In a sync of some ranges no others are listed, also where they are of the same group.
func TestListingOutsideTheSpan(t *testing.T) {
	span := wire.Span{From: 64, To: 120}
	for name, spoil := range map[string]func(*wire.Listing){
		"listed":   func(m *wire.Listing) { m.Ranges = append(m.Ranges, 125) },
		"left out": func(m *wire.Listing) { m.Left = append(m.Left, 125) },
	} {
		h := coarse{dbadapter.NewHasher(testSecret)}
		a, b := newSide(t, "a", h), newSide(t, "b", h)
		for i := range 3000 {
			a.put(record(fmt.Sprint("k", i), "one", at(0)))
			b.put(record(fmt.Sprint("k", i), "two", at(time.Second)))
		}
		if out := run(t, a, b, Options{Span: span, DryRun: true}, nil); out.errA != nil || out.a.Repair.Ranges == 0 {
			t.Fatalf("an honest peer: %v, %+v", out.errA, out.a.Repair)
		}
		out := run(t, a, b, Options{Span: span}, func(from bool, m wire.Message) wire.Message {
			if from {
				return spoiling(spoil)(m)
			}
			return m
		})
		if !errors.Is(out.errB, ErrProtocol) {
			t.Errorf("%s: %v", name, out.errB)
		}
	}
}
