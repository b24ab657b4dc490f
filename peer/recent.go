package peer

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// SyncRecord is a sync that has ended, as RecentSyncs remembers it.
type SyncRecord struct {
	// Time is when it ended.
	Time time.Time
	// Incoming: the peer began it.
	Incoming bool
	// DryRun: it found the differences and moved nothing.
	DryRun bool
	Report Report
	// Error is empty if it succeeded.
	Error string
}

// recent is a ring of the last syncs that ended.
type recent struct {
	mu   sync.Mutex
	ring [RecentSyncs]SyncRecord
	n    int // how many there were
}

func (r *recent) add(s SyncRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.n%RecentSyncs] = s
	r.n++
}

// RecentSyncs returns the last syncs that ended, the latest first.
func (n *Node) RecentSyncs() []SyncRecord {
	r := &n.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []SyncRecord{}
	for i := r.n - 1; i >= max(0, r.n-RecentSyncs); i-- {
		out = append(out, r.ring[i%RecentSyncs])
	}
	return out
}

// ended accounts for a conversation. RecentSyncs lists one of a control namespace only
// where it has failed: otherwise that of the data follows.
func (n *Node) ended(s SyncRecord, control bool, err error) {
	n.metrics.syncs.WithLabelValues(result(err)).Inc()
	n.metrics.bytes.WithLabelValues("sent").Add(float64(s.Report.WireBytesSent))
	n.metrics.bytes.WithLabelValues("received").Add(float64(s.Report.WireBytesReceived))
	if err != nil {
		s.Error = err.Error()
	}
	what := "sync"
	if control {
		what = "sync of the members"
	}
	if !control || err != nil {
		n.recent.add(s)
	}
	r := &s.Report
	n.repaired(r)
	level := slog.LevelInfo
	switch {
	case err != nil && !errors.Is(err, reconcile.ErrListsDiffer): // which is no failure
		level = slog.LevelWarn
	case r.Differences() == 0:
		level = slog.LevelDebug // most of those in the background
	}
	n.log.LogAttrs(n.ctx, level, what, slog.String("ns", r.Namespace), slog.String("peer", r.Peer), slog.Bool("incoming", s.Incoming),
		slog.String("method", r.Method.String()), slog.Int("missing_here", r.MissingHere), slog.Int("missing_there", r.MissingThere),
		slog.Int("mismatched", r.Mismatched), slog.Int("applied", r.Applied), slog.Int("sent", r.Sent), slog.Int("rejected", r.Rejected),
		slog.Float64("duration_ms", r.DurationMS), slog.Bool("verified", r.Verified), logError(err))
}

// repaired counts and logs what a sync found where its cells did not prove
// themselves. A sum of a range that this node kept wrong is a fault of its memory or
// of the program, and so may be a sketch; a collision of checksums is chance, one
// changed record in four million, or a member's doing.
func (n *Node) repaired(r *reconcile.Report) {
	if !r.Repair.Needed() {
		return
	}
	for what, count := range map[string]int{"range": r.Repair.Ranges, "digest": r.Repair.Digests, "collision": r.Repair.Collisions, "left": r.Repair.Left} {
		n.metrics.repairs.WithLabelValues(what).Add(float64(count))
	}
	if r.Repair.Sketch {
		n.metrics.repairs.WithLabelValues("sketch").Inc()
	}
	n.log.LogAttrs(n.ctx, slog.LevelWarn, "the cells of a sync did not prove themselves", slog.String("ns", r.Namespace), slog.String("peer", r.Peer),
		slog.Int("ranges", r.Repair.Ranges), slog.Any("first", r.Listed), slog.Int("digests", r.Repair.Digests), slog.Int("collisions", r.Repair.Collisions),
		slog.Int("left", r.Repair.Left), slog.Bool("sketch", r.Repair.Sketch))
}
