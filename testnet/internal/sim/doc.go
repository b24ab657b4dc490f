// Package sim is a small world in one goroutine: virtual time, links that
// delay, lose and double what they carry, and disks that forget what was not
// synced. A run is a function of its seed: the same calls in the same order
// give the same trace, to the bit.
//
// Three rules keep it so. Everything that happens is an event of one queue,
// ordered by (time, order of asking). Everything that is random is a hash of
// the seed, of what it is drawn for, and of counters of that thing alone, so
// that taking one event out of a plan leaves the draws of all others as they
// were. And nobody looks at a real clock, or ranges over a map where the order
// shows.
//
// What is not simulated: the time that computing takes. A node answers at the
// instant at which it is asked.
package sim
