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

// headway notes that the sync has moved records of so many bytes: that were applied here, or
// sent, or whose heads were listed. Each moves once.
func (l *link) headway(records int, bytes int64) {
	l.records, l.bytes = l.records+records, l.bytes+bytes
	if l.records >= headwayRecords || l.bytes >= headwayBytes {
		l.waited, l.records, l.bytes = 0, 0, 0
	}
}

// wait fails once this side has waited for its peer for waitFor without headway. Nothing
// else that a peer sends prolongs a sync: that it works, cells, or records that are refused.
// It is ErrBusy: two large equal sets on slow machines may take as long, and nothing is wrong.
// One wait counts as waitOnce at most: this machine may have slept in it.
func (l *link) wait(d time.Duration) error {
	if l.waited += min(d, waitOnce); l.waited > waitFor {
		return fmt.Errorf("%w: this side has waited %v for the peer, in which less than %d records and less than %d bytes of them moved", ErrBusy, l.waited.Round(time.Second), headwayRecords, headwayBytes)
	}
	return nil
}
