package syncing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
)

// Part is a set of records that is synced by itself.
type Part interface {
	ID() dbadapter.NamespaceID
	// Rests reports whether the part need not be synced with a peer yet: the two were proved
	// equal a short while ago.
	Rests(remote roster.ID) bool
	// Seeks reports whether a move of the part waits for its syncs.
	Seeks() bool
}

// Schedule decides when the node syncs with which peer on its own. Each peer has a
// lane: one sync at a time, and rests after failures. So a slow peer does not delay
// the others. A driver begins a round after each pause.
type Schedule[P Part] struct {
	config ScheduleConfig

	mu      sync.Mutex // guards what follows
	lanes   map[roster.ID]*lane
	waiting []Turn[P] // begun, and without a place
	running int
}

// ScheduleConfig says how often and how much is synced in the background.
type ScheduleConfig struct {
	// Interval is the mean pause between background syncs with a peer, as of now.
	Interval func() time.Duration
	// Places is how many turns may run at once; one may if it is 0.
	Places int
	// Jitter spreads a pause between two rounds around its mean, JitterRest one after a failure.
	Jitter, JitterRest func(mean time.Duration) time.Duration
}

// Turn is a peer whose turn it is, with the parts to sync with it, one after the other.
type Turn[P Part] struct {
	Remote roster.ID
	Parts  []P
}

// lane is the background syncs with one peer.
type lane struct {
	taken bool // it waits for a place, or runs
	whole rest // while the peer cannot be reached
	of    map[dbadapter.NamespaceID]*rest
}

// rest keeps from trying too often what fails: it grows up to maxRest intervals.
type rest struct {
	length time.Duration // the next one; 0 after a success
	until  time.Time
}

// NewSchedule is without rests.
func NewSchedule[P Part](c ScheduleConfig) *Schedule[P] {
	return &Schedule[P]{config: c, lanes: map[roster.ID]*lane{}}
}

// Pause is how long to wait before the next round. While a part seeks, a move waits for syncs.
func (s *Schedule[P]) Pause(seeks bool) time.Duration {
	pause := s.config.Interval()
	if seeks {
		pause = min(pause, MovePause)
	}
	return s.config.Jitter(pause)
}

// Rounds is what holds the syncs of a schedule.
type Rounds[P Part] interface {
	// Sync syncs a part with a peer. reached says whether there is a connection to the peer.
	// ErrSkipped: the part is not open.
	Sync(ctx context.Context, p P, remote roster.ID) (reached bool, err error)
	// Now is a time that the machine's clock does not move.
	Now() time.Time
	// Go runs f at the same time.
	Go(ctx context.Context, f func(ctx context.Context))
}

// Round begins a round: each partner takes its turn, unless its last one is not over. It
// returns when all turns that have a place have begun.
func (s *Schedule[P]) Round(ctx context.Context, d Rounds[P], partners []Turn[P]) {
	s.begin(partners)
	s.run(ctx, d)
}

// run begins the turns that have a place.
func (s *Schedule[P]) run(ctx context.Context, d Rounds[P]) {
	for t, ok := s.next(); ok; t, ok = s.next() {
		d.Go(ctx, func(ctx context.Context) {
			s.turn(ctx, d, t)
			s.done(t)
			if ctx.Err() == nil {
				s.run(ctx, d) // another turn has waited for the place
			}
		})
	}
}

// turn syncs with one peer.
func (s *Schedule[P]) turn(ctx context.Context, d Rounds[P], t Turn[P]) {
	for _, p := range t.Parts {
		if !s.due(p, t.Remote, d.Now()) {
			continue
		}
		reached, err := d.Sync(ctx, p, t.Remote)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrSkipped):
			continue
		}
		s.note(p, t.Remote, d.Now(), reached, err)
	}
}

// begin has each partner wait for its turn, unless its last one is not over.
func (s *Schedule[P]) begin(partners []Turn[P]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range partners {
		if l := s.lane(t.Remote); !l.taken {
			l.taken = true
			s.waiting = append(s.waiting, t)
		}
	}
}

// lane is that of a peer; mu is held.
func (s *Schedule[P]) lane(remote roster.ID) *lane {
	l := s.lanes[remote]
	if l == nil {
		l = &lane{of: map[dbadapter.NamespaceID]*rest{}}
		s.lanes[remote] = l
	}
	return l
}

// next gives the next turn, while there is a place.
func (s *Schedule[P]) next() (Turn[P], bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.running >= max(1, s.config.Places) {
		return Turn[P]{}, false
	}
	t := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.running++
	return t, true
}

// done ends a turn.
func (s *Schedule[P]) done(t Turn[P]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.lanes[t.Remote].taken = false
}

// due reports whether a part is to be synced with a peer in its turn. That is so if
// neither rests, and they were not proved equal a short while ago.
func (s *Schedule[P]) due(p P, remote roster.ID, now time.Time) bool {
	if p.Rests(remote) { // it locks what Wake is called with
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lane(remote)
	r := l.of[p.ID()]
	return !now.Before(l.whole.until) && (r == nil || !now.Before(r.until))
}

// note tells how a sync ended. reached says whether there is a connection to the
// peer. A part that fails, because the peer has dropped it perhaps, rests
// alone; a peer that is away rests with all. A sync that ran to its end and left
// records declined has not failed: all others have travelled.
func (s *Schedule[P]) note(p P, remote roster.ID, now time.Time, reached bool, err error) {
	longest := maxRest * s.config.Interval()
	if p.Seeks() {
		longest = min(s.config.Interval(), MovePause)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lane(remote)
	r := l.of[p.ID()]
	if r == nil {
		r = &rest{}
		l.of[p.ID()] = r
	}
	away := Failed(err) && !reached && errors.Is(err, reconcile.ErrUnreachable)
	s.after(&l.whole, now, away, longest)
	s.after(r, now, Failed(err) && !away, longest)
}

// after sets a rest after a sync; mu is held.
func (s *Schedule[P]) after(r *rest, now time.Time, failed bool, longest time.Duration) {
	if !failed {
		*r = rest{}
		return
	}
	r.length = min(max(s.config.Interval(), r.length*3/2), longest)
	r.until = now.Add(s.config.JitterRest(r.length))
}

// Wake ends all rests: a change is known that may help.
func (s *Schedule[P]) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		l.whole = rest{}
		clear(l.of)
	}
}

// Backoff decides whether a sync is tried again that met a busy peer, and after which
// pause. A value is for one sync, from its first try on.
type Backoff struct {
	// Jitter spreads a pause around its mean.
	Jitter func(mean time.Duration) time.Duration
	pause  time.Duration
}

// Again reports whether to try again, and how long to wait before that. elapsed is
// the time since the first try began.
func (b *Backoff) Again(elapsed time.Duration, err error) (time.Duration, bool) {
	patience, longest := BusyPatience, BusyPatience
	if errors.Is(err, reconcile.ErrTurn) {
		patience, longest = TurnPatience, turnPause
	}
	if !errors.Is(err, reconcile.ErrBusy) || elapsed >= patience {
		return 0, false
	}
	b.pause = min(max(firstPause, b.pause*3/2), longest)
	return min(b.Jitter(b.pause), patience-elapsed), true
}
