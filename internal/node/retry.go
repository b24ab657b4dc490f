package node

import (
	"errors"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// firstPause is how long a sync waits before it asks a busy peer again: some
// round trips. Each further pause is half as long again.
const firstPause = 50 * time.Millisecond

// BusyRetry decides whether a sync is tried again that met a busy peer. Its zero
// value is for one sync, from its first try on.
type BusyRetry struct {
	pause time.Duration
}

// Again reports whether to try again, and how long to wait before that. elapsed is
// the time since the first try began.
func (b *BusyRetry) Again(n *Node, elapsed time.Duration, err error) (time.Duration, bool) {
	patience, longest := BusyPatience, BusyPatience
	if errors.Is(err, reconcile.ErrTurn) {
		patience, longest = TurnPatience, turnPause
	}
	if !errors.Is(err, reconcile.ErrBusy) || elapsed >= patience {
		return 0, false
	}
	b.pause = min(max(firstPause, b.pause*3/2), longest)
	return min(n.jittered(b.pause, ForBusy), patience-elapsed), true
}
