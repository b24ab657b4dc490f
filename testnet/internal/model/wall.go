package model

import (
	"time"

	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// wall is a machine's clock: virtual time, set wrong.
type wall struct {
	world   *sim.World
	ahead   time.Duration
	stopped bool
	stands  time.Time // what it says while it is stopped
	stops   int
}

func (w *wall) now() time.Time {
	if w.stopped {
		return w.stands
	}
	return Epoch.Add(w.world.Now() + w.ahead)
}

// Skew moves the node's clock.
func (n *Node) Skew(d time.Duration) {
	n.wall.ahead += d
	n.wall.stands = n.wall.stands.Add(d)
}

// StopClock stops the node's clock for a time; it then goes on from there.
func (n *Node) StopClock(d time.Duration) {
	w := &n.wall
	w.stands, w.stopped = w.now(), true
	w.stops++
	stop := w.stops
	n.world.After(d, func() {
		if w.stopped && w.stops == stop {
			w.stopped = false
			w.ahead = w.stands.Sub(Epoch) - n.world.Now()
		}
	})
}

// SetClock sets the node's clock right.
func (n *Node) SetClock() { n.wall.ahead, n.wall.stopped = 0, false }

// Clock is the reading of the node's clock.
func (n *Node) Clock() time.Time { return n.wall.now() }
