// Package clocks is what the greetings of syncs show of the peers' clocks. It says
// how far each is away, and whether two nodes run with one identity.
//
//	var offsets clocks.Offsets                          // one for the node
//	offsets.Measure(peer, greeting.Time, sent, received)
//	own, peers := offsets.Own(now)                      // this node's clock, by the median of theirs
//
//	var twins clocks.Twins                              // one for each namespace
//	err := twins.Greeted(peer, greeting, now, skew)     // reconcile.ErrTwin: do not sync with it
//
// Two nodes of one identity are a copy of a data directory and its original. They
// do not meet, so that only their peers can tell: from the incarnation and the
// reading of the clock that each greeting has. A peer that has found them refuses
// both, and [Copied] remembers what it said.
//
// Nothing here reads a clock. The zero value of each type is ready, and its methods
// may be called from several goroutines. What is remembered is bounded, and lost
// with a restart. Clocks that are less than ClockOff apart, and twins of which one
// has never greeted this node, are not found.
package clocks

import "time"

const (
	// TwinLife is for how long two nodes of one identity are reported after both
	// have greeted. It is some sync intervals, so that the report does not
	// appear and vanish.
	TwinLife = 15 * time.Minute
	// maxRuns is how many runs of greetings are remembered of a peer: as many
	// restarts whose greetings may be late.
	maxRuns = 16
	// ClockOff is by how much two clocks that are right may differ. Time servers,
	// and a virtual machine that was paused for a moment, keep well within it.
	ClockOff = time.Second
	// OffsetLife is for how long a measured offset says something. A clock without
	// time servers drifts by less than 0.4 s in it (100 ppm).
	OffsetLife = time.Hour
)
