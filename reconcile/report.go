package reconcile

import (
	"fmt"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// NamedRanges is how many ranges a report names: more are no fault of a range.
const NamedRanges = 16

// Report tells what a sync found and did, seen from the side that holds it.
// The names and the durations are filled in by the driver of the session. What has a JSON name is in the
// HTTP API as it is here; there the tag doc describes it.
type Report struct {
	Namespace string `json:"ns" doc:"the namespace's local name"`
	Peer      string `json:"peer" doc:"the other side's id"`
	// Method is how the differences were found; MethodAuto until it is decided.
	Method wire.Method `json:"-"`
	// Rounds counts round trips from the initiator until it held everything.
	Rounds int `json:"rounds" doc:"round trips until the initiator held everything"`
	// Cells counts the cells that travelled, SketchBytes their bytes with the
	// estimator's.
	Cells       int   `json:"cells" doc:"coded cells that travelled"`
	SketchBytes int64 `json:"sketch_bytes" doc:"bytes of the cells and of the estimator"`
	// Working counts the messages that say that a side is working, both ways.
	Working int `json:"-"`
	// RecordBytes are the bytes of the frames of records, both ways.
	RecordBytes       int64 `json:"record_bytes" doc:"bytes of the frames of records, both ways"`
	WireBytesSent     int64 `json:"wire_bytes_sent"`
	WireBytesReceived int64 `json:"wire_bytes_received"`
	// The differences found, in indices: each is one record but for keys that
	// share an index.
	MissingHere  int `json:"missing_here" doc:"differing indices that only the peer holds"`
	MissingThere int `json:"missing_there" doc:"differing indices that only this node holds"`
	Mismatched   int `json:"mismatched" doc:"indices that both hold with different versions"`
	// Keys counts the keys that a dry run listed; MoreKeys says that it was told to stop
	// before it had listed all.
	Keys     int  `json:"-"`
	MoreKeys bool `json:"-"`
	// Applied counts the records received that are now held here, Sent those
	// sent to the peer, Rejected those that either side refused.
	Applied  int `json:"applied" doc:"records received that this node now holds"`
	Sent     int `json:"sent" doc:"records sent to the peer"`
	Rejected int `json:"rejected" doc:"records that either side refused"`
	// DeclinedHere and DeclinedThere are the records of Rejected by reason: the
	// peer's that this side declined, and this side's that the peer did.
	DeclinedHere  Reasons `json:"-"`
	DeclinedThere Reasons `json:"-"`
	// DeclinedCollectable counts those of Rejected, of both sides, that were declined, now or
	// in an earlier sync, for another reason than the floor. It counts only tombstones,
	// records that expire, and those declined for their time or because their index was full.
	// While it is 0, a sync that ran to its end both ways has brought every other tombstone to
	// both sides.
	DeclinedCollectable int `json:"-"`
	// DeclinedForFloor names this side's records that the peer declined for its
	// floor, now or in an earlier sync: at most wire.MaxRefusals of them.
	DeclinedForFloor []Declining `json:"-"`
	// Theirs is the peer's greeting, once the peer has proved that it knows the
	// secret.
	Theirs wire.Greeting `json:"-"`
	// Collected and SetAside count those of DeclinedForFloor that left this side after
	// the sync, since the peer's floor was proven. What had been deleted or had expired
	// is gone; the others are kept for a person.
	Collected int `json:"-"`
	SetAside  int `json:"-"`
	// Estimate is the number of differences guessed before the cells were
	// asked for; 0 if the first ones were enough.
	Estimate int64 `json:"estimate" doc:"differences estimated before cells were asked for; 0 if the first cells were enough"`
	// ForecastBytes is what the sync was expected to cost, both ways, as far
	// as this side can tell before records travel.
	ForecastBytes int64 `json:"forecast_bytes" doc:"expected cost in bytes, both ways, before records travel"`
	// Repair is what the proof by range found and mended.
	Repair Repair `json:"-"`
	// Listed are the ranges that were compared exactly: the first NamedRanges of them.
	Listed []dbadapter.Range `json:"-"`
	// DurationMS and StepsMS are milliseconds.
	DurationMS float64            `json:"duration_ms"`
	StepsMS    map[string]float64 `json:"steps_ms" doc:"time of each step: sketch, subtract, peel, fetch, apply, verify"`
	// Split, if not nil, says that nothing has moved yet: the differences are so many
	// that the sync goes on in parts.
	Split *Split `json:"-"`
	// Parts is how many parts the sync goes in, as far as is known, and PartsDone how
	// many of them are over. Both are 0 for a sync that is not split. The side that was
	// called only counts those that have begun.
	Parts     int `json:"parts,omitempty" doc:"parts that a large sync goes in, as far as is known"`
	PartsDone int `json:"parts_done,omitempty" doc:"how many of them are over; the side that was called knows of no others"`
	// MembersOnly says that the lists of members were synced and nothing else: the two share no
	// shard. Such a sync is not verified.
	MembersOnly bool `json:"members_only,omitempty" doc:"the two share no shard, and only their lists of members were synced"`
	// Verified says that both sets were proved equal but for the differences
	// listed, and that all of those were exchanged. A dry run exchanges
	// nothing; it is verified if the rest was proved equal. A sync of one
	// direction that left something for the other is not verified.
	Verified bool `json:"verified" doc:"the sets were proved equal but for the differences found, and all of these were exchanged (a dry run exchanges no record)"`
}

// Differences is the number of differing indices found.
func (r *Report) Differences() int { return r.MissingHere + r.MissingThere + r.Mismatched }

// Reasons counts declined records by reason. Those under 0 were declined in an
// earlier sync, for a reason that was told then.
type Reasons [wire.Reasons]int

// Sum is how many records there are.
func (r *Reasons) Sum() (n int) {
	for _, count := range r {
		n += count
	}
	return n
}

// String lists the reasons that there are, each with its number of records.
func (r Reasons) String() string {
	var parts []string
	for why, count := range r {
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d: %s", count, wire.Reason(why)))
		}
	}
	return strings.Join(parts, ", ")
}

func (r *Report) declinedHere(why wire.Reason) {
	r.Rejected++
	r.DeclinedHere[why]++
}

// Declining names a record of this side's that the peer declines. A pair would not do:
// a member can grind two keys to one.
type Declining struct {
	Index   dbadapter.Index
	Key     []byte
	Version dbadapter.Version
	// Before: the peer declined it in an earlier sync, and so before it greeted in
	// this one.
	Before bool
}

// declinedThere counts a record of this side's that the peer declines, or has declined
// before.
func (r *Report) declinedThere(h *dbadapter.Hashed, why wire.Reason, before bool) {
	r.Rejected++
	r.DeclinedThere[why]++
	if why == wire.ReasonFloor && len(r.DeclinedForFloor) < wire.MaxRefusals {
		r.DeclinedForFloor = append(r.DeclinedForFloor, Declining{h.Index, h.Key, h.Version, before})
	}
}

// Step names a step of a sync, in code, logs, metrics and reports alike.
type Step int

// The steps, in order.
const (
	StepSketch Step = iota
	StepSubtract
	StepPeel
	StepFetch
	StepApply
	StepVerify
	steps
)

// stepNames are what code, logs, metrics and reports call the steps.
var stepNames = [steps]string{"sketch", "subtract", "peel", "fetch", "apply", "verify"}

// String is the step's name.
func (s Step) String() string { return stepNames[s] }

// Steps lists all steps in order.
func Steps() []Step {
	all := make([]Step, steps)
	for i := range all {
		all[i] = Step(i)
	}
	return all
}
