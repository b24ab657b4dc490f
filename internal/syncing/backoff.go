package syncing

import (
	"errors"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

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
