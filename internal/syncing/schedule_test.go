package syncing

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
)

// remote is a peer.
const remote = roster.ID("a peer")

// part is a set of records.
type part struct {
	id           byte
	rests, seeks bool
}

func (p *part) ID() dbadapter.NamespaceID { return dbadapter.NamespaceID{p.id} }
func (p *part) Rests(roster.ID) bool      { return p.rests }
func (p *part) Seeks() bool               { return p.seeks }

// scheduled is a schedule of some parts, and its clock.
type scheduled struct {
	*Schedule[*part]
	parts []*part
	clock time.Time
}

func newScheduled(parts int, interval time.Duration) *scheduled {
	s := &scheduled{Schedule: NewSchedule[*part](ScheduleConfig{Interval: func() time.Duration { return interval }, Places: 3, Jitter: spread, JitterRest: spread}), clock: time.Unix(0, 0)}
	for i := range parts {
		s.parts = append(s.parts, &part{id: byte(i)})
	}
	return s
}

// tries counts how often a part is due in so many rounds, an interval apart,
// where each try ends in the same way.
func (s *scheduled) tries(p *part, rounds int, reached bool, result error) (n int) {
	for range rounds {
		s.clock = s.clock.Add(s.config.Interval())
		if s.due(p, remote, s.clock) {
			n++
			s.note(p, remote, s.clock, reached, result)
		}
	}
	return n
}

// Rests grow, to about eight intervals, and end with the first success. Those of
// a namespace are its own, those of a peer that is away are for all.
func TestRests(t *testing.T) {
	s := newScheduled(5, time.Second)
	ns := s.parts
	if n := s.tries(ns[0], 100, true, reconcile.ErrDenied); n < 8 || n > 40 {
		t.Errorf("a namespace that fails was tried %d times", n)
	}
	if n := s.tries(ns[1], 1, true, nil); n != 1 {
		t.Error("a second namespace rests with the first")
	}
	if n := s.tries(ns[1], 100, true, reconcile.ErrUnreachable); n < 8 || n > 40 {
		t.Errorf("a stream that breaks was tried %d times", n)
	}
	if n := s.tries(ns[2], 1, true, nil); n != 1 {
		t.Error("a third namespace rests with one whose stream broke")
	}
	if n := s.tries(ns[2], 100, false, reconcile.ErrUnreachable); n < 8 || n > 40 {
		t.Errorf("a peer that is away was tried %d times", n)
	}
	s.note(ns[2], remote, s.clock, false, reconcile.ErrUnreachable)
	until := s.lanes[remote].whole.until
	if !until.After(s.clock) || s.due(ns[3], remote, until.Add(-1)) {
		t.Error("a peer that is away was tried for another namespace")
	}
	s.clock = until
	s.note(ns[2], remote, s.clock, false, reconcile.ErrDenied)
	if !s.due(ns[3], remote, s.clock) {
		t.Error("a second namespace rests with one that the peer denied before it left")
	}
	if n := s.tries(ns[3], 20, true, nil); n != 20 {
		t.Errorf("a peer that is back was tried %d times", n)
	}
	if n := s.tries(ns[3], 20, true, fmt.Errorf("cut: %w", context.Canceled)); n != 20 {
		t.Errorf("a sync that was cut off was tried %d times", n)
	}
	// The records that one side declines may never be let in, and keep no others waiting.
	if n := s.tries(ns[3], 20, true, fmt.Errorf("%w: 1 of them", ErrRejected)); n != 20 {
		t.Errorf("a sync that ran to its end and left a record declined was tried %d times", n)
	}
	// Success ends a rest at once: the next one is as short as the first.
	s.tries(ns[4], 100, true, reconcile.ErrDenied)
	s.note(ns[4], remote, s.clock, true, nil)
	if !s.due(ns[4], remote, s.clock) {
		t.Error("after a success it rests")
	}
	s.note(ns[4], remote, s.clock, true, reconcile.ErrDenied)
	if r := s.lanes[remote].of[ns[4].ID()]; r.length != s.config.Interval() {
		t.Errorf("after a success and a failure the rest is %s", r.length)
	}
}

// Each rest has a length between half and one and a half of the one meant, which
// begins at an interval, grows by half and stops at eight: and then it is over.
func TestRestsAreBounded(t *testing.T) {
	s := newScheduled(2, time.Minute)
	ns, list := s.parts[0], s.parts
	const meant = "1m0s 1m30s 2m15s 3m22.5s 5m3.75s 7m35.625s 8m0s 8m0s 8m0s"
	var lengths []time.Duration
	least, most := time.Duration(1<<62), time.Duration(0)
	for i := range 500 {
		s.note(ns, remote, s.clock, true, errors.New("it fails"))
		r := s.lanes[remote].of[ns.ID()]
		if i < 9 {
			lengths = append(lengths, r.length)
		}
		rest := r.until.Sub(s.clock)
		if rest < r.length/2 || rest >= r.length*3/2 {
			t.Fatalf("rest %d, meant to be %s, is %s", i, r.length, rest)
		}
		if r.length > maxRest*time.Minute {
			t.Fatalf("rest %d is %s", i, r.length)
		}
		if i > 9 {
			least, most = min(least, rest), max(most, rest)
		}
		if s.due(ns, remote, r.until.Add(-1)) || !s.due(ns, remote, r.until) {
			t.Fatalf("rest %d does not end when it should", i)
		}
		s.clock = r.until
	}
	if got := fmt.Sprint(lengths); got != "["+meant+"]" || maxRest != 8 {
		t.Errorf("the rests are meant to be %s, want %s", got, meant)
	}
	if least > 5*time.Minute || most < 11*time.Minute {
		t.Errorf("of 490 long rests the shortest was %s, the longest %s", least, most)
	}
	// A change that may help ends them all.
	s.note(ns, remote, s.clock, true, errors.New("it fails"))
	s.note(list[1], remote, s.clock, false, reconcile.ErrUnreachable)
	if s.due(ns, remote, s.clock) || s.due(list[1], remote, s.clock) {
		t.Error("it does not rest")
	}
	if s.Wake(); !s.due(ns, remote, s.clock) || !s.due(list[1], remote, s.clock) {
		t.Error("it rests after Wake")
	}
}

// rounds holds the syncs of a schedule, each until it is told to end it.
type rounds struct {
	clock   time.Time
	begun   []string
	waiting []func()
}

func (r *rounds) Now() time.Time { return r.clock }

func (r *rounds) Go(ctx context.Context, f func(ctx context.Context)) {
	r.waiting = append(r.waiting, func() { f(ctx) })
}

func (r *rounds) Sync(_ context.Context, _ *part, remote roster.ID) (bool, error) {
	r.begun = append(r.begun, string(remote))
	return true, nil
}

// A peer's turn comes once at a time, with all parts shared with it, and no more turns run
// than have a place.
func TestTurns(t *testing.T) {
	for _, places := range []int{0, 1, 3} {
		s, r := newScheduled(3, time.Second), &rounds{}
		s.config.Places = places
		partners := []Turn[*part]{{"a", s.parts[:1]}, {"b", s.parts[:1]}, {"c", s.parts}, {"d", s.parts[:1]}}
		for range 2 { // another round, before the first has run
			s.Round(t.Context(), r, partners)
		}
		if len(s.waiting)+s.running != 4 || s.running != max(1, places) {
			t.Errorf("%d places: %d turns wait and %d run, of 4 peers", places, len(s.waiting), s.running)
		}
		for len(r.waiting) > 0 {
			next := r.waiting[0]
			r.waiting = r.waiting[1:]
			if next(); s.running > max(1, places) {
				t.Errorf("%d places: %d turns run", places, s.running)
			}
		}
		if got := fmt.Sprint(r.begun); got != "[a b c c c d]" {
			t.Errorf("%d places: the turns were %s", places, got)
		}
		if s.Round(t.Context(), r, partners); s.running != max(1, places) {
			t.Errorf("%d places: the next round has %d turns", places, s.running)
		}
	}
}

// A node that ends begins no further turn, and notes nothing of the syncs that it has cut.
func TestTurnsEnd(t *testing.T) {
	s, r := newScheduled(2, time.Second), &rounds{}
	ctx, end := context.WithCancel(t.Context())
	s.Round(ctx, r, []Turn[*part]{{"a", s.parts}, {"b", s.parts}, {"c", s.parts}, {"d", s.parts}})
	end()
	for _, next := range r.waiting {
		next()
	}
	if got := fmt.Sprint(r.begun); got != "[a b c]" || s.running != 0 {
		t.Errorf("after its end: %s, and %d run", got, s.running)
	}
}

// A pair that was proved equal is not due; a part that seeks is soon, whatever failed.
func TestPartsRestAndSeek(t *testing.T) {
	s := newScheduled(2, time.Minute)
	s.parts[0].rests = true
	if s.due(s.parts[0], remote, s.clock) || !s.due(s.parts[1], remote, s.clock) {
		t.Error("not the part that was proved equal rests")
	}
	p := s.parts[1]
	for _, seeks := range []bool{false, true} {
		p.seeks = seeks
		for _, reached := range []bool{true, false} {
			for range 20 {
				s.note(p, remote, s.clock, reached, reconcile.ErrUnreachable)
			}
			if due := s.due(p, remote, s.clock.Add(MovePause*3/2)); due != seeks {
				t.Errorf("it seeks: %t, it was reached: %t, it is due: %t", seeks, reached, due)
			}
		}
	}
}

// Pauses are spread around the interval; while a part seeks they are short.
func TestPause(t *testing.T) {
	s := newScheduled(0, time.Minute)
	s.config.Jitter = func(mean time.Duration) time.Duration { return mean + 1 }
	if still, seeks := s.Pause(false), s.Pause(true); still != time.Minute+1 || seeks != MovePause+1 {
		t.Errorf("pauses of %s and %s", still, seeks)
	}
}
