package peer

import (
	"errors"
	"log/slog"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// RecentSyncs returns the last syncs that ended, the latest first.
func (n *Node) RecentSyncs() []status.Sync { return n.recent.List() }

// finished lists a sync of this node's own that has met the peer.
func (n *Node) finished(r *reconcile.Report, dry bool, err error) {
	if r.WireBytesSent+r.WireBytesReceived == 0 || errors.Is(err, ErrBusy) && r.Parts == 0 || errors.Is(err, node.ErrNotHeld) {
		return
	}
	s := status.Sync{Time: n.now().UTC(), DryRun: dry, Report: *r}
	if err != nil {
		s.Error = err.Error()
	}
	n.recent.Add(s, dbadapter.NamespaceID{})
}

// ended accounts for a conversation. RecentSyncs lists one of a control namespace only
// where it has failed: otherwise that of the data follows. Of the syncs that this node
// begins it lists the conversations that were put off; finished lists the whole.
func (n *Node) ended(s status.Sync, of *side, err error) {
	n.metrics.Synced(s.Incoming, &s.Report, err)
	if err != nil {
		s.Error = err.Error()
	}
	what := "sync"
	if of.ask.Control {
		what = "sync of the members"
	}
	busy := errors.Is(err, ErrBusy)
	switch {
	case of.ask.Control && err == nil, busy && of.ask.Part():
	case of.ask.Control, busy:
		n.recent.Add(s, of.set())
	case s.Incoming:
		n.recent.Follow(s, syncing.StageOf(of.ask.Part(), &s.Report), of.by, of.set())
	}
	r := &s.Report
	n.repaired(r)
	if !of.ask.Control && !of.ask.DryRun {
		n.metrics.Differences(r.Namespace, r)
	}
	level := slog.LevelInfo
	switch {
	case errors.Is(err, ErrPaused), busy: // as a person wants it; it is tried again
	case errors.Is(err, ErrClosed), of.moved(err): // a shard is handed over, or the node ends
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

// repaired logs what a sync found where its cells did not prove themselves.
// A sum of a range that this node kept wrong is a fault of its memory or of the
// program, and so may be a sketch. A collision of checksums is chance, one changed
// record in four million, or a member's doing.
func (n *Node) repaired(r *reconcile.Report) {
	if !r.Repair.Needed() {
		return
	}
	n.log.LogAttrs(n.ctx, slog.LevelWarn, "the cells of a sync did not prove themselves", slog.String("ns", r.Namespace), slog.String("peer", r.Peer),
		slog.Int("ranges", r.Repair.Ranges), slog.Any("first", r.Listed), slog.Int("digests", r.Repair.Digests), slog.Int("collisions", r.Repair.Collisions),
		slog.Int("left", r.Repair.Left), slog.Bool("sketch", r.Repair.Sketch))
}
