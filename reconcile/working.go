package reconcile

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// Tick is called by long work that is done for the session within Next: by the
// scans of its replica. It gives the session a chance to tell its peer that it is
// working, and costs a look at the clock. After an error the work must end with
// that error. Outside Next it does nothing.
func (s *Session) Tick() error {
	if !s.running {
		return nil
	}
	return s.link.tick()
}

// elapsed is the session's clock; 0 without one.
func (l *link) elapsed() time.Duration {
	if l.opts.Elapsed == nil {
		return 0
	}
	return l.opts.Elapsed()
}

// tick gives way to others, and sends a Working message if this side has been silent
// for workingEvery. It fails once this side has computed for workingFor: the peer waits no longer.
func (l *link) tick() error {
	if l.gone {
		return ErrClosed
	}
	now := l.elapsed()
	if l.opts.GiveWay != nil && now-l.gaveWay >= giveWayEvery {
		l.gaveWay = now
		l.opts.GiveWay()
	}
	switch {
	case now-l.turn > workingFor:
		return fmt.Errorf("%w: this side has computed for %v and is not done", ErrBusy, workingFor)
	case now-l.spoke >= workingEvery:
		l.spoke = now
		return l.emit(&wire.Working{}, true)
	}
	return nil
}

// overworked fails if a peer has said too often, or for too long, that it is
// working: count Working messages have come in a row since the moment began.
func (l *link) overworked(count int, began time.Duration) error {
	if took := l.elapsed() - began; count > maxWorking || took > workingFor+workingSlack {
		return violation("the peer has said %d times in a row, for %v, that it is working; at most %v are allowed", count, took.Round(time.Second), workingFor)
	}
	return nil
}
