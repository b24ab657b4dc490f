package api

import (
	"time"

	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Report tells what a sync found, moved and proved, as the side saw it that
// answers.
type Report struct {
	Namespace         string             `json:"ns" doc:"the namespace's local name"`
	Peer              string             `json:"peer" doc:"the other side's id"`
	Method            string             `json:"method" doc:"how the differences were found: same, sketch, parts or all"`
	Rounds            int                `json:"rounds" doc:"round trips until the initiator held everything"`
	Cells             int                `json:"cells" doc:"coded cells that travelled"`
	SketchBytes       int64              `json:"sketch_bytes" doc:"bytes of the cells and of the estimator"`
	RecordBytes       int64              `json:"record_bytes" doc:"bytes of the frames of records, both ways"`
	WireBytesSent     int64              `json:"wire_bytes_sent"`
	WireBytesReceived int64              `json:"wire_bytes_received"`
	MissingHere       int                `json:"missing_here" doc:"differing indices that only the peer holds"`
	MissingThere      int                `json:"missing_there" doc:"differing indices that only this node holds"`
	Mismatched        int                `json:"mismatched" doc:"indices that both hold with different versions"`
	Applied           int                `json:"applied" doc:"records received that this node now holds"`
	Sent              int                `json:"sent" doc:"records sent to the peer"`
	Rejected          int                `json:"rejected" doc:"records that either side refused"`
	DeclinedHere      map[string]int     `json:"declined_here,omitempty" doc:"of the peer's records, those that this node declined, by reason: clock, signature, writer, floor, full, or earlier for those of an earlier sync"`
	DeclinedThere     map[string]int     `json:"declined_there,omitempty" doc:"of this node's records, those that the peer declined, by reason; clock: is this machine's clock right?"`
	Estimate          int64              `json:"estimate" doc:"differences estimated before cells were asked for; 0 if the first cells were enough"`
	ForecastBytes     int64              `json:"forecast_bytes" doc:"expected cost in bytes, both ways, before records travel"`
	Repair            string             `json:"repair" doc:"what was found where the cells did not prove themselves; empty if they did"`
	Parts             int                `json:"parts,omitempty" doc:"parts that a large sync goes in, as far as is known"`
	PartsDone         int                `json:"parts_done,omitempty" doc:"how many of them are over; the side that was called knows of no others"`
	DurationMS        float64            `json:"duration_ms"`
	StepsMS           map[string]float64 `json:"steps_ms" doc:"time of each step: sketch, subtract, peel, fetch, apply, verify"`
	MembersOnly       bool               `json:"members_only,omitempty" doc:"the two share no shard, and only their lists of members were synced"`
	Verified          bool               `json:"verified" doc:"the sets were proved equal but for the differences found, and all of these were exchanged (a dry run exchanges no record)"`
}

// Differences is the number of differing indices found.
func (r *Report) Differences() int { return r.MissingHere + r.MissingThere + r.Mismatched }

// ReportOf is the JSON form of a report.
func ReportOf(r *reconcile.Report) Report {
	return Report{
		Namespace: r.Namespace, Peer: r.Peer, Method: r.Method.String(), Rounds: r.Rounds,
		Cells: r.Cells, SketchBytes: r.SketchBytes, RecordBytes: r.RecordBytes,
		WireBytesSent: r.WireBytesSent, WireBytesReceived: r.WireBytesReceived,
		MissingHere: r.MissingHere, MissingThere: r.MissingThere, Mismatched: r.Mismatched,
		Applied: r.Applied, Sent: r.Sent, Rejected: r.Rejected,
		DeclinedHere: reasons(&r.DeclinedHere), DeclinedThere: reasons(&r.DeclinedThere),
		Estimate: r.Estimate, ForecastBytes: r.ForecastBytes, Repair: r.Repair.String(), Parts: r.Parts, PartsDone: r.PartsDone,
		DurationMS: r.DurationMS, StepsMS: r.StepsMS, MembersOnly: r.MembersOnly, Verified: r.Verified,
	}
}

// reasonNames are what JSON calls the reasons, by number.
var reasonNames = [wire.Reasons]string{0: "earlier", wire.ReasonClock: "clock", wire.ReasonSignature: "signature", wire.ReasonWriter: "writer", wire.ReasonFloor: "floor", wire.ReasonFull: "full", wire.ReasonBody: "body"}

// reasons are those that there are.
func reasons(r *reconcile.Reasons) map[string]int {
	out := map[string]int{}
	for why, n := range r {
		if n > 0 {
			out[reasonNames[why]] = n
		}
	}
	return out
}

// SyncRequest asks for a sync.
type SyncRequest struct {
	Peer     string `json:"peer" doc:"a peer id, or a multiaddr that ends in /p2p/ and one"`
	NS       string `json:"ns" doc:"the namespace's local name"`
	Prefix   string `json:"prefix,omitempty" doc:"only keys that begin with it"`
	Prefix64 []byte `json:"prefix64,omitempty" doc:"the prefix, if it is not UTF-8"`
	Dir      string `json:"dir,omitempty" enum:"both,pull,push" doc:"which way records may go; default both"`
	Method   string `json:"method,omitempty" enum:"auto,sketch,all" doc:"default auto: the cheapest"`
	DryRun   bool   `json:"dry_run,omitempty" doc:"find the differences, change nothing"`
}

// SyncEnd is a sync that has ended.
type SyncEnd struct {
	Time     time.Time `json:"time"`
	Incoming bool      `json:"incoming" doc:"the peer began it"`
	DryRun   bool      `json:"dry_run" doc:"it found the differences and moved nothing"`
	Report   Report    `json:"report"`
	Error    string    `json:"error,omitempty"`
}

// Syncs are the last syncs, the latest first.
type Syncs struct {
	Syncs []SyncEnd `json:"syncs"`
	// Running are the reports so far of syncs that callers wait for.
	Running []Report `json:"running,omitempty"`
}

// SyncsOf is the JSON form of the last syncs.
func SyncsOf(all []status.Sync) Syncs {
	out := Syncs{Syncs: make([]SyncEnd, 0, len(all))}
	for _, r := range all {
		out.Syncs = append(out.Syncs, SyncEnd{r.Time, r.Incoming, r.DryRun, ReportOf(&r.Report), r.Error})
	}
	return out
}
