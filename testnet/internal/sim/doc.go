// Package sim is a small world in one goroutine: virtual time, links that delay,
// lose and double frames, and disks that lose unsynced writes. A run is a function
// of its seed: the same calls in the same order give the same trace, to the bit.
//
// Three rules keep it so. All events stand in one queue, ordered by time and then by
// the order of the calls that made them. Each random draw is a hash of the seed, a
// purpose, and counters of that purpose. So a plan without one of its events leaves all
// other draws the same. The code reads no real clock, and ranges over no map where the
// order shows.
//
// Computing takes no time here: a node answers at the instant of the request.
package sim
