package syncing

import (
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Conn is the connection over which a peer began a conversation.
type Conn interface{ IsClosed() bool }

// History is the last syncs that ended, and those of peers that go on.
type History struct {
	most int

	mu   sync.Mutex // guards list
	list []recorded // the latest last
}

// NewHistory remembers so many syncs.
func NewHistory(most int) *History { return &History{most: most} }

// recorded is a sync as it is remembered.
type recorded struct {
	status.Sync
	began time.Time
	// open: it goes on in further conversations, which the peer begins.
	open bool
	// by is the connection over which the peer began the last conversation. set is what it
	// was about; zero: the list of members, or a sync of this node's own.
	by  Conn
	set dbadapter.NamespaceID
}

// brokenOff is the error of a sync whose connection has ended between two conversations.
const brokenOff = "the peer's connection ended before the last part of the sync"

// broken reports whether the peer does not go on with an open sync.
func (s *recorded) broken() bool { return s.open && s.by != nil && s.by.IsClosed() }

// Stage is what a conversation is in the sync that it belongs to.
type Stage int

const (
	stageWhole Stage = iota // it is all there is, or the last one
	stagePart               // it is a part of a large sync
	stageSplit              // parts follow
)

// StageOf is that of a conversation.
func StageOf(part bool, r *reconcile.Report) Stage {
	switch {
	case part:
		return stagePart
	case r.Split != nil:
		return stageSplit
	}
	return stageWhole
}

// Add adds a sync of this node's own, or a conversation that stands for one.
func (h *History) Add(s status.Sync, set dbadapter.NamespaceID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(recorded{Sync: s, began: began(&s), set: set})
}

// began is when a conversation that has ended had begun.
func began(s *status.Sync) time.Time {
	return s.Time.Add(-time.Duration(s.Report.DurationMS * float64(time.Millisecond)))
}

// put adds a sync; mu is held.
func (h *History) put(s recorded) {
	if len(h.list) >= h.most {
		h.list = slices.Delete(h.list, 0, 1)
	}
	s.Report.Split = nil // it says where the peer goes on, and not what happened
	h.list = append(h.list, s)
}

// Follow adds a conversation that a peer has begun over a connection to the sync that it
// belongs to.
func (h *History) Follow(s status.Sync, at Stage, by Conn, set dbadapter.NamespaceID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.list) - 1
	for ; i >= 0; i-- {
		of := &h.list[i]
		if of.Incoming && of.DryRun == s.DryRun && of.Report.Peer == s.Report.Peer && of.Report.Namespace == s.Report.Namespace && (of.set == set || of.set == dbadapter.NamespaceID{}) {
			break
		}
	}
	if i >= 0 && at != stagePart && h.list[i].by != by && h.list[i].broken() { // a part goes on with it, over another connection
		h.list[i].open, h.list[i].by, h.list[i].Error = false, nil, brokenOff
	}
	switch {
	case i < 0:
	case h.list[i].open:
		of := h.list[i]
		h.list = slices.Delete(h.list, i, i+1)
		s.Report = joined(of.Report, s.Report, at)
		s.Report.DurationMS = float64(s.Time.Sub(of.began).Microseconds()) / 1000 // some have run at once
		h.put(newRecorded(s, of.began, at, by, set))
		return
	case at == stagePart && h.list[i].Report.Parts > 0 && h.list[i].Error != "": // two parts at once have broken off
		h.list[i].Report = joined(h.list[i].Report, s.Report, at)
		return
	case at == stagePart && h.list[i].Report.Parts > 0 && began(&s).Before(h.list[i].Time):
		// The sync of everything, which has followed this part, was accounted for before it.
		of := &h.list[i].Report
		sum := joined(*of, s.Report, at)
		sum.Verified, sum.Theirs, sum.DeclinedForFloor, sum.DurationMS = of.Verified, of.Theirs, of.DeclinedForFloor, of.DurationMS
		*of = sum
		return
	}
	from := began(&s)
	if at == stagePart {
		s.Report = joined(reconcile.Report{Namespace: s.Report.Namespace, Peer: s.Report.Peer, Method: wire.MethodParts}, s.Report, at)
	}
	h.put(newRecorded(s, from, at, by, set))
}

func newRecorded(s status.Sync, began time.Time, at Stage, by Conn, set dbadapter.NamespaceID) recorded {
	r := recorded{Sync: s, began: began, set: set}
	if at != stageWhole && s.Error == "" {
		r.open, r.by = true, by
	}
	return r
}

// joined adds a conversation to what precedes it in its sync.
func joined(before, r reconcile.Report, at Stage) reconcile.Report {
	sum := Sum(before, r)
	sum.Parts, sum.PartsDone, sum.Verified = before.Parts, before.PartsDone, r.Verified && at == stageWhole
	if at == stagePart {
		sum.Parts++
		sum.PartsDone++
	}
	return sum
}

// List is the last syncs, the latest first.
func (h *History) List() []status.Sync {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]status.Sync, 0, len(h.list))
	for _, s := range slices.Backward(h.list) {
		switch {
		case s.broken():
			s.Error = brokenOff
		case s.open:
			forecast(&s.Report)
		}
		out = append(out, s.Sync)
	}
	return out
}
