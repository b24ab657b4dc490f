package wire

import "github.com/syncd-io/syncd/dbadapter"

// GreetingSize is the length of a Greeting on the wire.
const GreetingSize = 48

// Greeting is what a side says of itself besides what it holds. This package and the
// sync carry it; a node acts upon it.
type Greeting struct {
	// List is the digest of the side's list of members.
	List [16]byte
	// Tau promises that the set of this sync holds every version of the side's
	// own up to here. 0 promises nothing.
	Tau dbadapter.Timestamp
	// Floor is up to where the side has collected tombstones and expired
	// records.
	Floor dbadapter.Timestamp
	// Incarnation is drawn at random each time the side's node starts.
	Incarnation uint64
	// Time is the side's wall clock, in milliseconds since 1970.
	Time uint64
}
