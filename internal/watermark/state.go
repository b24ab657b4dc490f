package watermark

import (
	"errors"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// State is the part of a watermark that must be durable.
type State struct {
	// Floor: no record up to it that the node does not hold is let in. It is at
	// least the time of each tombstone collected, and never falls.
	Floor dbadapter.Timestamp `cbor:"1,keyasint"`
	// Pledged is the greatest promise ever made, or taken over from the inviter,
	// that members may rely on. No dated import is up to it.
	Pledged dbadapter.Timestamp `cbor:"2,keyasint"`
	// Serial is that of the last pledge made.
	Serial uint64 `cbor:"3,keyasint"`
	// Epoch is how often the members have gone on without this node.
	Epoch uint64 `cbor:"4,keyasint"`
	// Recovering: the node may lack what it, or the members, once held. It
	// promises nothing, keeps nothing out and collects nothing.
	//
	// Of a shard, what does not recover is whole (package quorum), and it is that by its row.
	Recovering bool `cbor:"5,keyasint"`
	// Holds are the dated and restamped records that members may not hold yet.
	Holds []Hold `cbor:"6,keyasint"`
	// List is the list of members under which Holds count.
	List [16]byte `cbor:"7,keyasint"`
	// Proved: this node's own records up to it were in a set that a sync has proved
	// equal to another member's.
	Proved dbadapter.Timestamp `cbor:"8,keyasint,omitempty"`
	// Right is this node's right to write (roster.List.Right), as it was when it was followed last.
	Right dbadapter.Timestamp `cbor:"9,keyasint,omitempty"`
	// RightLost is the reading of the clock when this node learned that it had lost its
	// right. Its own records up to it that are not proved are to be set aside. 0:
	// that is done.
	RightLost dbadapter.Timestamp `cbor:"10,keyasint,omitempty"`
	// Lost: it recovers since records were lost, or replaced by those of a copy. Of a shard.
	Lost bool `cbor:"11,keyasint,omitempty"`
}

// MaxHolds is how many groups of dated records are waited for one by one.
const MaxHolds = 16

// Hold is records that keep the promise down: dated imports, or what a restamp
// makes anew. A member's pledge may give At, or a later reading of this node's
// clock. That member has met a snapshot that holds the records from Clock on.
type Hold struct {
	Clock dbadapter.Timestamp `cbor:"1,keyasint"`
	At    dbadapter.Timestamp `cbor:"2,keyasint"`
}

// Clone copies s so deeply that changing the copy leaves s alone.
func (s State) Clone() State {
	s.Holds = slices.Clone(s.Holds)
	return s
}

// Validate checks what was read from a disk.
func (s *State) Validate() error {
	if len(s.Holds) > MaxHolds {
		return errors.New("too many dated imports that members may not hold")
	}
	return nil
}

// hold adds records that are written until the clock gives a reading. Where there
// are many, the last two are taken together, which holds more back.
func (s *State) hold(clock, at dbadapter.Timestamp) {
	s.Holds = append(s.Holds, Hold{clock, at})
	for n := len(s.Holds); n > MaxHolds; n = len(s.Holds) {
		last := s.Holds[n-1]
		s.Holds = s.Holds[:n-1]
		s.Holds[n-2] = Hold{min(s.Holds[n-2].Clock, last.Clock), max(s.Holds[n-2].At, last.At)}
	}
}
