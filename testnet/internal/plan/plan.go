package plan

import (
	"time"

	"github.com/syncd-io/syncd/internal/placement"
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
	// Seed decides all random draws.
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
	// Push says that nodes push what they write.
	Push bool
	// Shards is into how many shards the namespace is cut, by the hash of the key; Replicas how
	// many hosts each is to have; 0: it is not cut.
	Shards, Replicas int
	// Writer: by placement writer, values of more than Inline bytes stay in a shard of their writer.
	Writer bool
	Inline int
	// Locator: nodes follow which keys there are.
	Locator bool
	// Prefixes is the table of a namespace that is cut by prefixes of keys first.
	Prefixes []placement.PrefixShard
	// Alone says that only node 0 has the namespace when the run begins; the
	// others join when an event says so. Otherwise all are members of all.
	Alone bool
	// Checksums is how many bits of a checksum tell records of one minute apart; 0: all
	// 22. With few, other contents have equal checksums.
	Checksums int
	// Indices is how many indices keys are spread over; 0: as the seed says.
	Indices int
	// Ground, if not empty, is the prefix of keys that share one index, as a member that
	// knows the secret can grind them.
	Ground string
	// Log is how many changes the change log of a node keeps at least; 0: all.
	Log int
	// Events stand in order of time; those of the same time happen in the
	// order of the list.
	Events []Event
	// Settle is the time after the last event, with everything healed, in which
	// the nodes must converge.
	Settle time.Duration
	// Expect is the expected outcome.
	Expect Expect
}

// Net is how each link treats frames. The probabilities hold for each frame.
type Net struct {
	// A frame takes Delay and up to Jitter more.
	Delay, Jitter time.Duration
	// Loss, Duplicate and Reorder are probabilities from 0 to 1.
	Loss, Duplicate, Reorder float64
}

// Event is one event. The verb decides which fields count; the others are zero.
type Event struct {
	// At is the virtual time since the run began.
	At   time.Duration
	Verb Verb
	// Node is the node of the event, Peer the other end of a link or sync.
	Node, Peer int
	// Key is the key written, the name of a program that watches, or the first part of the
	// keys of a batch. Of a partition it is the groups, as in "0,1|2,3", of a grant the role.
	Key string
	// Value is the value put. If it is empty, Size bytes are drawn: see [Plan.Value].
	Value string
	Size  int
	// For is how long the condition lasts, or how old a version is.
	For time.Duration
	// Ack is at which level a key is written, or how many hosts are to hold it, as in "2"; Read is at
	// which level it is read; empty: Quorum. AtLeast: what the node's last write of it was acknowledged
	// with is asked for, or something later.
	Ack, Read string
	AtLeast   bool
	// Finding is what a read is to come to; empty: whatever is right.
	Finding Finding
	// Amount is the milliseconds of a skew, or the per mille of a loss. It is the number of
	// records of a batch or an import, or of the members of a wait. Or it is the bit of a
	// flip, or the number of a phantom.
	Amount int64
	// Step is where a crash-at strikes.
	Step reconcile.Step
	// Watching are the parts of a watch.
	Watching Watching
	// Random are the parts of a random event.
	Random Random
}

// Random is how many events a random line stands for, and of what kind.
type Random struct {
	// Writes are how many records are written or deleted, under that many Keys
	// (0: DefaultKeys), with values of up to Size bytes (0: DefaultSize).
	Writes, Keys, Size int
	// Syncs are syncs on request, besides those that nodes begin on their own.
	Syncs int
	// Members are changes of the list of members, by any node and of any.
	Members int
	// Asks are questions and waits, some with a write before them, or a crash behind them.
	Asks int
	// Watches are programs that watch, some with breaks.
	Watches int
	// Gets are keys read at any node of a namespace that is cut into shards.
	Gets int
	// Faults is the number of faults, each with the event that ends it.
	Faults int
	// Profile says which faults; empty means mixed.
	Profile Profile
}

// Finding is what a read of a key comes to, as "get 2 key7 expect nowhere" says it.
type Finding string

// The findings.
const (
	// FoundRecord: a record.
	FoundRecord Finding = "record"
	// FoundNothing: nothing; hosts were asked.
	FoundNothing Finding = "nothing"
	// FoundNowhere: nothing, by the locator; no node was asked.
	FoundNowhere Finding = "nowhere"
	// FoundShort: too few hosts have answered.
	FoundShort Finding = "short"
	// FoundLost: the record is there, and no host has its value.
	FoundLost Finding = "lost"
)

// Findings lists all of them.
func Findings() []Finding {
	return []Finding{FoundRecord, FoundNothing, FoundNowhere, FoundShort, FoundLost}
}

// Bounds of a plan. They keep a text from asking for more memory or time than a
// machine has; a run of `make soak` uses far less.
const (
	// MaxNodes is the most nodes that the simulator runs in one process.
	MaxNodes = 1000
	// MaxEvents bounds the events, those of random lines counted.
	MaxEvents = 100_000
	// MaxTime bounds every duration: a year of virtual time still fits the
	// milliseconds of a version many times over.
	MaxTime = 365 * 24 * time.Hour
	// ChecksumBits is how many bits of a checksum tell no time.
	ChecksumBits = 22
	// MaxKeyBytes is shorter than a store allows, so that a batch can add its
	// numbers.
	MaxKeyBytes = 200
	// MaxSize is the longest value that a record carries.
	MaxSize = 1 << 20
	// MaxBatch is the most writes of one transaction, MaxBatchBytes their size
	// together.
	MaxBatch      = 4096
	MaxBatchBytes = 1 << 20
	// MaxBytes is the size of all values together.
	MaxBytes = 1 << 30
	// MaxText is the longest text that Parse reads, MaxLine its longest line,
	// in bytes.
	MaxText = 32 << 20
	MaxLine = 2 << 20
)

// Defaults of settings that a text leaves out.
const (
	DefaultNodes  = 3
	DefaultSkew   = time.Minute
	DefaultSettle = 5 * time.Minute
	// A random line writes DefaultKeys keys, and values of DefaultSize bytes at
	// the most.
	DefaultKeys = 50
	DefaultSize = 200
)
