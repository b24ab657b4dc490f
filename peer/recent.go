package peer

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// SyncRecord is a sync that has ended, as RecentSyncs remembers it. A large sync that goes
// in parts is one. While it runs, the record of the side that was called tells how far it
// is. That side learns of a break between two parts by the end of the connection alone.
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

// recent are the last syncs that ended, the latest last.
type recent struct {
	mu   sync.Mutex
	list []recorded
}

// recorded is a sync as it is remembered.
type recorded struct {
	SyncRecord
	began time.Time
	// open: it goes on in further conversations, which the peer begins.
	open bool
	// by is the connection over which the peer began the last conversation. set is what it
	// was about; zero: the list of members, or a sync of this node's own.
	by  network.Conn
	set dbadapter.NamespaceID
}

// brokenOff is the error of a sync whose connection has ended between two conversations.
const brokenOff = "the peer's connection ended before the last part of the sync"

// broken reports whether the peer does not go on with an open sync.
func (s *recorded) broken() bool { return s.open && s.by != nil && s.by.IsClosed() }

// stage is what a conversation is in the sync that it belongs to.
type stage int

const (
	stageWhole stage = iota // it is all there is, or the last one
	stagePart               // it is a part of a large sync
	stageSplit              // parts follow, or a sync of what a broken one has left
)

// stageOf is that of a conversation.
func stageOf(part bool, r *Report) stage {
	switch {
	case part:
		return stagePart
	case r.Split != nil || r.Behind:
		return stageSplit
	}
	return stageWhole
}

func (r *recent) add(s SyncRecord, set dbadapter.NamespaceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(recorded{SyncRecord: s, began: began(&s), set: set})
}

// began is when a conversation that has ended had begun.
func began(s *SyncRecord) time.Time {
	return s.Time.Add(-time.Duration(s.Report.DurationMS * float64(time.Millisecond)))
}

// put adds a sync; mu is held.
func (r *recent) put(s recorded) {
	if len(r.list) >= RecentSyncs {
		r.list = slices.Delete(r.list, 0, 1)
	}
	s.Report.Split = nil // it says where the peer goes on, and not what happened
	r.list = append(r.list, s)
}

// follow adds a conversation that a peer has begun over a connection to the sync that it
// belongs to.
func (r *recent) follow(s SyncRecord, at stage, by network.Conn, set dbadapter.NamespaceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := len(r.list) - 1
	for ; i >= 0; i-- {
		of := &r.list[i]
		if of.Incoming && of.DryRun == s.DryRun && of.Report.Peer == s.Report.Peer && of.Report.Namespace == s.Report.Namespace && (of.set == set || of.set == dbadapter.NamespaceID{}) {
			break
		}
	}
	if i >= 0 && at != stagePart && r.list[i].by != by && r.list[i].broken() { // a part goes on with it, over another connection
		r.list[i].open, r.list[i].by, r.list[i].Error = false, nil, brokenOff
	}
	switch {
	case i < 0:
	case r.list[i].open:
		of := r.list[i]
		r.list = slices.Delete(r.list, i, i+1)
		s.Report = joined(of.Report, s.Report, at)
		s.Report.DurationMS = ms(s.Time.Sub(of.began)) // some have run at once
		r.put(newRecorded(s, of.began, at, by, set))
		return
	case at == stagePart && r.list[i].Report.Parts > 0 && r.list[i].Error != "": // two parts at once have broken off
		r.list[i].Report = joined(r.list[i].Report, s.Report, at)
		return
	case at == stagePart && r.list[i].Report.Parts > 0 && began(&s).Before(r.list[i].Time):
		// The sync of everything, which has followed this part, was accounted for before it.
		of := &r.list[i].Report
		sum := joined(*of, s.Report, at)
		sum.Verified, sum.Theirs, sum.DeclinedForFloor, sum.DurationMS = of.Verified, of.Theirs, of.DeclinedForFloor, of.DurationMS
		*of = sum
		return
	}
	from := began(&s)
	if at == stagePart {
		s.Report = joined(Report{Namespace: s.Report.Namespace, Peer: s.Report.Peer, Method: wire.MethodParts}, s.Report, at)
	}
	r.put(newRecorded(s, from, at, by, set))
}

func newRecorded(s SyncRecord, began time.Time, at stage, by network.Conn, set dbadapter.NamespaceID) recorded {
	r := recorded{SyncRecord: s, began: began, set: set}
	if at != stageWhole && s.Error == "" {
		r.open, r.by = true, by
	}
	return r
}

// joined adds a conversation to what precedes it in its sync.
func joined(before, r Report, at stage) Report {
	sum := syncing.Sum(before, r)
	sum.Parts, sum.PartsDone, sum.Verified = before.Parts, before.PartsDone, r.Verified && at == stageWhole
	if at == stagePart {
		sum.Parts++
		sum.PartsDone++
	}
	return sum
}

// RecentSyncs returns the last syncs that ended, the latest first.
func (n *Node) RecentSyncs() []SyncRecord {
	r := &n.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]SyncRecord, 0, len(r.list))
	for _, s := range slices.Backward(r.list) {
		switch {
		case s.broken():
			s.Error = brokenOff
		case s.open:
			syncing.Forecast(&s.Report)
		}
		out = append(out, s.SyncRecord)
	}
	return out
}

// finished lists a sync of this node's own that has met the peer.
func (n *Node) finished(r *Report, dry bool, err error) {
	if r.WireBytesSent+r.WireBytesReceived == 0 || errors.Is(err, ErrBusy) && r.Parts == 0 || errors.Is(err, node.ErrNotHeld) {
		return
	}
	s := SyncRecord{Time: n.now().UTC(), DryRun: dry, Report: *r}
	if err != nil {
		s.Error = err.Error()
	}
	n.recent.add(s, dbadapter.NamespaceID{})
}

// ended accounts for a conversation. RecentSyncs lists one of a control namespace only
// where it has failed: otherwise that of the data follows. Of the syncs that this node
// begins it lists the conversations that were put off; finished lists the whole.
func (n *Node) ended(s SyncRecord, of *side, err error) {
	n.metrics.ended(s.Incoming, &s.Report, err)
	n.metrics.bytes.WithLabelValues("sent").Add(float64(s.Report.WireBytesSent))
	n.metrics.bytes.WithLabelValues("received").Add(float64(s.Report.WireBytesReceived))
	if err != nil {
		s.Error = err.Error()
	}
	what := "sync"
	if of.control {
		what = "sync of the members"
	}
	busy := errors.Is(err, ErrBusy)
	switch {
	case of.control && err == nil, busy && of.part:
	case of.control, busy:
		n.recent.add(s, of.set())
	case s.Incoming:
		n.recent.follow(s, stageOf(of.part, &s.Report), of.by, of.set())
	}
	r := &s.Report
	n.repaired(r)
	if !of.control && !of.dry {
		n.metrics.found(r)
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

// repaired counts and logs what a sync found where its cells did not prove themselves.
// A sum of a range that this node kept wrong is a fault of its memory or of the
// program, and so may be a sketch. A collision of checksums is chance, one changed
// record in four million, or a member's doing.
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
