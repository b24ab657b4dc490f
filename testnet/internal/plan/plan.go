package plan

import (
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// Plan is a whole run. Its slices are shared by copies; nothing here changes
// them in place.
type Plan struct {
	// Name is that of the scenario; it may be empty.
	Name string
	// Prose is the comment above everything, a line each.
	Prose []string
	// Nodes is how many nodes there are, numbered from 0.
	Nodes int
	// Seed decides all that is random.
	Seed uint64
	// Net is how the links between nodes behave.
	Net Net
	// Every is about how often each node begins a sync on its own, with some
	// other node; 0 means never.
	Every time.Duration
	// Skew is how far ahead of a node's clock a version may be.
	Skew time.Duration
	// Signed says that writers sign their records.
	Signed bool
	// Alone says that only node 0 has the namespace when the run begins; the
	// others join when an event says so. Otherwise all are members of all.
	Alone bool
	// Events stand in order of time; those of the same time happen in the
	// order of the list.
	Events []Event
	// Closing is the comment below the last event, a line each.
	Closing []string
	// Settle is how long after the last event, with everything healed, the
	// nodes may take to converge.
	Settle time.Duration
	// Expect is what should come out.
	Expect Expect
}

// Net is how each link treats frames. The probabilities hold for each frame.
type Net struct {
	// A frame takes Delay and up to Jitter more.
	Delay, Jitter time.Duration
	// Loss, Duplicate and Reorder are probabilities from 0 to 1.
	Loss, Duplicate, Reorder float64
}

// Event is one thing that happens. Which fields count depends on the verb; the
// others are zero.
type Event struct {
	// Note is the comment above the event, its lines joined by "\n".
	Note string
	// At is the virtual time since the run began.
	At   time.Duration
	Verb Verb
	// Node is the one that it happens to, Peer the other end of a link or sync.
	Node, Peer int
	// Key is what is written; the first part of the keys of a batch; the groups
	// of a partition, as in "0,1|2,3".
	Key string
	// Value is what is put. If it is empty, Size bytes are drawn instead: see
	// [Plan.Value].
	Value string
	Size  int
	// For is how long the condition lasts.
	For time.Duration
	// Amount is the milliseconds of a skew, the number of records of a batch,
	// the per mille of a loss, the bit of a flip.
	Amount int64
	// Step is where a crash-at strikes.
	Step reconcile.Step
	// Random is what a random event is made of.
	Random Random
}

// Random is how many events a random line stands for, and of what kind.
type Random struct {
	// Writes are how many records are written or deleted, under that many Keys
	// (0: DefaultKeys), with values of up to Size bytes (0: DefaultSize).
	Writes, Keys, Size int
	// Syncs are begun by somebody, beside those that nodes begin on their own.
	Syncs int
	// Faults are things that go wrong, each with its end.
	Faults int
	// Profile says which faults; empty means mixed.
	Profile Profile
}
