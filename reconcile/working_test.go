package reconcile

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// slow is a replica that takes its time, on a clock of the test: so long for a
// scan for cells, which ticks as often, and so long for each record read.
type slow struct {
	Replica
	clock         *time.Duration
	scan, between time.Duration
	read          time.Duration
	tick          func() error
}

func (s *slow) Cells(from, to int) ([]rateless.Cell, error) {
	for spent := time.Duration(0); spent < s.scan; spent += s.between {
		*s.clock += s.between
		if err := s.tick(); err != nil {
			return nil, err
		}
	}
	return s.Replica.Cells(from, to)
}

func (s *slow) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	*s.clock += s.read
	return s.Replica.Buckets(indices)
}

func (s *slow) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	*s.clock += s.read
	return s.Replica.Lookup(indices, sums)
}

func (s *slow) All() iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		for r, err := range s.Replica.All() {
			*s.clock += s.read
			if !yield(r, err) {
				return
			}
		}
	}
}

// silences runs a sync on one clock, and returns the longest time that passed
// between two frames, and how many of them were Working.
func silences(t *testing.T, a, b *side, o Options, make func(*set, *time.Duration, func() error) Replica) (out outcome, longest time.Duration, working int) {
	t.Helper()
	var clock, last time.Duration
	elapsed := func() time.Duration { return clock }
	a.elapsed, b.elapsed = elapsed, elapsed
	var sa, sb *Session
	va, vb := a.open(), b.open()
	defer va.Close()
	defer vb.Close()
	sa = Initiate(make(va, &clock, func() error { return sa.Tick() }), a.options(b, o))
	sb = Respond(opening(make(vb, &clock, func() error { return sb.Tick() })), b.options(a, Options{}))
	defer sa.Close()
	defer sb.Close()
	carry(t, sa, sb, &out, func(_ bool, m wire.Message) wire.Message {
		longest, last = max(longest, clock-last), clock
		if _, ok := m.(*wire.Working); ok {
			working++
		}
		return m
	})
	out.a, out.b, out.errA, out.errB = sa.Report(), sb.Report(), sa.Err(), sb.Err()
	return out, longest, working
}

// Whatever a side computes, its peer hears of it every five seconds or so: a
// scan for cells, lookups, buckets read for the plan and the residual, a scan
// for the method all, its forecast, the admission.
func TestNothingIsSilentForLong(t *testing.T) {
	for name, c := range map[string]struct {
		o     Options
		empty bool
		make  func(*set, *time.Duration, func() error) Replica
		admit time.Duration
	}{
		"scans for cells": {make: func(s *set, clock *time.Duration, tick func() error) Replica {
			return &slow{s, clock, time.Minute, time.Second, 0, tick}
		}},
		"slow reads": {make: func(s *set, clock *time.Duration, tick func() error) Replica {
			return &slow{s, clock, 0, 1, time.Second, tick}
		}},
		"everything": {o: Options{Method: wire.MethodAll}, make: func(s *set, clock *time.Duration, tick func() error) Replica {
			return &slow{s, clock, 0, 1, time.Second, tick}
		}},
		"a forecast of everything": {o: Options{DryRun: true}, empty: true, make: func(s *set, clock *time.Duration, tick func() error) Replica {
			return &slow{s, clock, 0, 1, time.Second, tick}
		}},
		"a slow admission": {make: func(s *set, _ *time.Duration, _ func() error) Replica { return s }, admit: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			for i := range 100 {
				if !c.empty {
					a.put(record(fmt.Sprint("a", i), strings.Repeat("x", 20_000), at(0)))
				}
				b.put(record(fmt.Sprint("b", i), strings.Repeat("x", 20_000), at(0)))
			}
			var clock *time.Duration
			for _, s := range []*side{a, b} {
				s.admit = func(records []dbadapter.Record) ([]Verdict, error) {
					*clock += c.admit
					return s.write(records)
				}
			}
			out, longest, working := silences(t, a, b, c.o, func(s *set, now *time.Duration, tick func() error) Replica {
				clock = now
				return c.make(s, now, tick)
			})
			if out.errA != nil || out.errB != nil || !c.o.DryRun && !out.a.Verified {
				t.Fatal(out.errA, out.errB, out.log)
			}
			if longest > 2*workingEvery || working == 0 {
				t.Errorf("silent for %v; %d Working messages", longest, working)
			}
			if !c.o.DryRun {
				wantEqual(t, a, b)
			}
		})
	}
}

// A side that computes lets others run meanwhile, whatever it does.
func TestSessionsGiveWay(t *testing.T) {
	for _, method := range []wire.Method{wire.MethodSketch, wire.MethodAll} {
		a, b := diverged(t, seeded(t, 6), 1000, 300, 300, time.Hour, nil)
		gave := 0
		a.giveWay = func() { gave++ }
		b.giveWay = a.giveWay
		var took *time.Duration
		out, _, _ := silences(t, a, b, Options{Method: method}, func(s *set, clock *time.Duration, tick func() error) Replica {
			took = clock
			return &slow{s, clock, 0, 1, giveWayEvery / 4, tick}
		})
		if out.errA != nil || out.errB != nil {
			t.Fatal(out.errA, out.errB)
		}
		if reads := int(*took / (giveWayEvery / 4)); gave < reads/8 || gave > reads || reads < 100 {
			t.Errorf("method %v: others could run %d times in %v, of %d reads", method, gave, *took, reads)
		}
	}
}

// A side computes for no longer than it may say so.
func TestComputingForTooLong(t *testing.T) {
	a, b := diverged(t, seeded(t, 5), 20, 5, 5, time.Hour, nil)
	out, longest, working := silences(t, a, b, Options{}, func(s *set, clock *time.Duration, tick func() error) Replica {
		return &slow{s, clock, time.Hour, time.Second, 0, tick}
	})
	if !errors.Is(out.errA, ErrBusy) || longest > 2*workingEvery || working > int(workingFor/workingEvery) {
		t.Errorf("%v after %d Working messages, silent for %v", out.errA, working, longest)
	}
}

// A peer that gives little, or nothing, is cut once this side has waited for it for waitFor:
// it may say that it works, and send records that are refused, or one now and then. One that
// moves 256 records in that time goes on.
func TestLittleProlongsNoSync(t *testing.T) {
	sent := 0
	one := func() wire.Message {
		sent++
		return &wire.Records{Records: []wire.Sent{{Record: record(fmt.Sprint("k", sent), "v", at(0))}}}
	}
	several := func() wire.Message {
		m := one().(*wire.Records)
		for range 21 {
			m.Records = append(m.Records, one().(*wire.Records).Records...)
		}
		return m
	}
	refuse := func(records []dbadapter.Record) ([]Verdict, error) {
		return slices.Repeat([]Verdict{{Reason: wire.ReasonSignature}}, len(records)), nil
	}
	for _, c := range []struct {
		name  string
		says  func() wire.Message
		admit func([]dbadapter.Record) ([]Verdict, error)
		slept time.Duration // in the first wait
		ends  bool
	}{
		{"Working", func() wire.Message { return &wire.Working{} }, nil, 0, true},
		{"a record each time", one, nil, 0, true},
		{"22 records that are refused", several, refuse, 0, true},
		{"22 records", several, nil, 0, false},
		{"22 records, after a night", several, nil, 11 * time.Hour, false},
	} {
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		b.put(record("b", "", at(0)))
		if c.admit != nil {
			b.admit = c.admit
		}
		clock, most := time.Duration(0), 2*waitFor
		b.elapsed = func() time.Duration { return clock }
		says := func(first ...wire.Message) func([]wire.Message) wire.Message {
			return func([]wire.Message) wire.Message {
				if len(first) > 0 {
					m := first[0]
					first = first[1:]
					return m
				}
				clock, most = clock+c.slept, most+c.slept
				c.slept = 0
				if clock += 25 * time.Second; clock > most {
					return nil
				}
				return c.says()
			}
		}
		s, o := asked(t, a, b)
		(&script{o: o, says: says(helloOf(a, func(h *wire.Hello) {
			h.Cells, h.Method, h.Records, h.Digest = nil, wire.MethodAll, 50_000, dbadapter.Digest{3}
		}), &wire.Answer{})}).play(t, s, 1000)
		if ended := errors.Is(s.Err(), ErrBusy); ended != c.ends || ended != (clock > waitFor && clock <= waitFor+25*time.Second) || !ended && clock <= most {
			t.Errorf("%s: the responder: %v after %v", c.name, s.Err(), clock)
		}
		if clock = 0; c.name != "Working" {
			continue
		}
		a.elapsed = b.elapsed
		s, o = asking(t, a, b)
		(&script{o: o, says: says(&wire.Welcome{Sum: dbadapter.Sum{Records: 1, Digest: dbadapter.Digest{1}}})}).play(t, s, 1000)
		if !errors.Is(s.Err(), ErrBusy) || clock <= waitFor || clock > waitFor+25*time.Second {
			t.Errorf("the initiator: %v after %v", s.Err(), clock)
		}
	}
}
