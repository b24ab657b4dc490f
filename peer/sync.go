package peer

import (
	"context"
)

// Direction says which way records may go.
type Direction string

// The directions of a sync.
const (
	Both Direction = "both"
	Pull Direction = "pull"
	Push Direction = "push"
)

// SyncOptions says what to sync and how. The zero value syncs all, both ways.
type SyncOptions struct {
	// Prefix narrows the sync to the keys that begin with it.
	Prefix []byte
	// Direction of the records. Default: Both.
	Direction Direction
	// Method of reconciliation: "auto" (default) or "sketch".
	Method string
	// DryRun finds the differences and changes nothing.
	DryRun bool
	// Progress, if not nil, is called with the report so far, from one
	// goroutine, after each message. It must be quick.
	Progress func(Report)
}

// Report tells what a sync found, moved and proved. Its JSON form is that of
// the command line and the HTTP API.
type Report struct {
	Namespace         string `json:"ns"`
	Peer              string `json:"peer"`
	Method            string `json:"method"`
	Rounds            int    `json:"rounds"`
	Cells             int    `json:"cells"`
	SketchBytes       int64  `json:"sketch_bytes"`
	RecordBytes       int64  `json:"record_bytes"`
	WireBytesSent     int64  `json:"wire_bytes_sent"`
	WireBytesReceived int64  `json:"wire_bytes_received"`
	MissingHere       int    `json:"missing_here"`
	MissingThere      int    `json:"missing_there"`
	Mismatched        int    `json:"mismatched"`
	Applied           int    `json:"applied"`
	Sent              int    `json:"sent"`
	Rejected          int    `json:"rejected"`
	// Estimate of the number of differences, made before they were decoded.
	Estimate float64 `json:"estimate"`
	// ForecastBytes is what a sync would move, both ways, sketch included.
	ForecastBytes int64              `json:"forecast_bytes"`
	Repair        string             `json:"repair"`
	DurationMS    float64            `json:"duration_ms"`
	StepsMS       map[string]float64 `json:"steps_ms"`
	// Verified: both sides proved that the differences found explain the
	// whole gap between the two sets.
	Verified bool `json:"verified"`
}

// Sync makes this node's records and the peer's equal. The peer must be a
// member here, and this node one there. The report is meaningful beside an
// error: what was applied stays.
func (ns *Namespace) Sync(ctx context.Context, id ID, o SyncOptions) (Report, error) {
	return Report{}, errNotYet
}

// Diff finds what differs and forecasts what a sync would move; it changes
// nothing on either side. It is Sync with DryRun.
func (ns *Namespace) Diff(ctx context.Context, id ID, o SyncOptions) (Report, error) {
	o.DryRun = true
	return ns.Sync(ctx, id, o)
}
