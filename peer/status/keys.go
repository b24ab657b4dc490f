package status

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Standing says how what this node holds under a key stands to what a peer holds.
type Standing string

// The standings. Those of two records that differ have the words of a listing of
// differences.
const (
	// StandingUnknown: the peer did not answer.
	StandingUnknown Standing = "unknown"
	// StandingSame: both hold the same record, or tombstone.
	StandingSame Standing = "same"
	// StandingNeither: neither holds anything under the key.
	StandingNeither Standing = "held by neither"
	// StandingTwoContents: both hold one version, and of two contents: two imports of one date, or
	// two nodes that had one identity. Of a conflict, the versions differ.
	StandingTwoContents Standing = "two contents"
)

// CauseKind names a cause.
type CauseKind string

// The causes.
const (
	// CauseUnreachable, CausePaused, CauseDenied, CauseBusy and CauseFailed say why the
	// standing is not known.
	CauseUnreachable CauseKind = "unreachable"
	CausePaused      CauseKind = "paused"
	CauseDenied      CauseKind = "not a member there"
	CauseBusy        CauseKind = "busy"
	CauseFailed      CauseKind = "failed"
	// CauseDeclinedThere: the peer declines what this node holds; CauseDeclinedHere: this
	// node declines what the peer holds.
	CauseDeclinedThere CauseKind = "declined there"
	CauseDeclinedHere  CauseKind = "declined here"
	// CauseCollectedThere: the peer has collected it, a tombstone or a record that has
	// expired; CauseCollectedHere: this node has.
	CauseCollectedThere CauseKind = "collected there"
	CauseCollectedHere  CauseKind = "collected here"
	// CauseRests: one of the two has declined in an earlier sync what the other holds, which
	// offers it again after a time only.
	CauseRests CauseKind = "declined before"
	// CauseExpired: the record that this node holds has expired by its clock.
	CauseExpired CauseKind = "expired"
	// CauseConflict: the greater of the two records was written beside the other one,
	// which gives way.
	CauseConflict CauseKind = "conflict"
	// CauseLapsed: the members do not wait for one of the two.
	CauseLapsed CauseKind = "lapsed"
	// CauseLists: the two have different lists of members.
	CauseLists CauseKind = "lists differ"
	// CauseNotSynced: a sync would make them the same, and none has been since.
	CauseNotSynced CauseKind = "not synced yet"
)

// Cause is why a key stands as it does.
type Cause struct {
	Kind CauseKind
	// Rule is that by which a record is declined; 0 for other causes.
	Rule wire.Reason
	// Text says it in words.
	Text string
}

// Why explains how what this node holds under a key stands to what a peer holds.
type Why struct {
	Peer     ID
	Standing Standing
	Causes   []Cause
	// Here and There are the records without their values; zero where one is missing, and
	// There also where it is unknown. What is There is the peer's own word.
	Here, There dbadapter.Record
	// Asked is when the peer answered, or failed to.
	Asked time.Time
	// Verified is when a sync has last proved the records equal to the peer's; zero for
	// never.
	Verified time.Time
}

// Add adds a cause.
func (w *Why) Add(kind CauseKind, rule wire.Reason, format string, args ...any) {
	w.Causes = append(w.Causes, Cause{kind, rule, fmt.Sprintf(format, args...)})
}

// Located is where a key is, and what its hosts say of it.
type Located struct {
	Shard int
	// Hosts are the members that hold it; none if no layout is known yet. While the shard moves, they
	// are the old hosts and the new ones.
	Hosts []ID
	// Moving: the old hosts and the new ones differ.
	Moving bool
	// Record is what the key was found to hold, a tombstone too; nil: nothing.
	Record *dbadapter.Record
	// Asked are the hosts that were asked, this node among them if it is one.
	Asked []LocatedAt
	// Locator is what the locator says; nil: the namespace has none.
	Locator *LocatorSays
}

// LocatedAt is what one host has answered.
type LocatedAt struct {
	Peer ID
	// Old and New: it is a host of that set. Whole: it has all that it must have.
	Old, New, Whole bool
	// Version is that of the record that it holds; zero: it holds none, or has not answered.
	Version dbadapter.Version
	// Took is how long its answer took.
	Took time.Duration
	// Err is why it has not answered; nil if it has.
	Err error
}

// LocatorSays is where a key is by what this node has heard from whole hosts of its shard, where the namespace
// has a locator. Reads at level one rest on it.
type LocatorSays struct {
	// Where is "nowhere", "in a shard", or "unknown": then the hosts of the key's shard are asked. At a
	// whole host of the key's shard it is "here": the node reads its own records.
	Where string
	// Shard is that of the value, if it is in a shard.
	Shard int
	// Host is the one at which the shard's keys were heard last; empty: they were not heard yet.
	Host ID
	// Age is how long ago Host was asked for what had changed when it has last told all of that. Fresh: that
	// was short enough ago for a key to be nowhere. Age is 0 where nothing was heard.
	Age   time.Duration
	Fresh bool
}

// Body is where the value of a key is that stays with its writer, by placement writer.
type Body struct {
	Shard int       `json:"shard"`
	Size  int       `json:"size" doc:"of the value in bytes"`
	Sent  time.Time `json:"sent" doc:"when its writer sent it"`
	// Hosts are those of the shard; while it moves, the old ones and the new ones.
	Hosts []BodyAt `json:"hosts"`
}

// BodyAt is what one host has of it.
type BodyAt struct {
	Peer  ID     `json:"peer"`
	Has   bool   `json:"has" doc:"it has the value"`
	Told  bool   `json:"told" doc:"it knows the record, and answers a read at level one alone"`
	Error string `json:"error,omitempty" doc:"why it has not answered; absent if it has"`
}

// KeptAt is an entry at a member, without the value, of which Size is the size.
type KeptAt struct {
	dbadapter.Kept
	Size int64
}

// FutureRecord is a record whose version is further ahead of this machine's clock
// than the namespace allows. The other members decline it.
type FutureRecord struct {
	Key     []byte
	Version dbadapter.Version
	// Own says that Restamp gives the record a version of now: this node wrote
	// it, or imported it with its date.
	Own bool
}

// Rejection is a record that a peer offered and this node refused.
type Rejection struct {
	Key     []byte
	Version dbadapter.Version
	// Peer is the member that offered it, which need not be its writer.
	Peer   ID
	Reason string
	// Time is when it was refused.
	Time time.Time
}
