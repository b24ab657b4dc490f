package syncing

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// A called side that accounts for the last part of a sync only after the sync of
// everything that has followed that part lists one sync all the same; a part of the next
// sync does not count there.
func TestLatePartIsOfItsSync(t *testing.T) {
	h := NewHistory(100)
	begun := time.Now()
	set := dbadapter.NamespaceID{1}
	ended := func(after, took time.Duration, at Stage, report reconcile.Report) {
		report.Peer, report.Namespace, report.DurationMS = "peer", "notes", float64(took.Milliseconds())
		h.Follow(status.Sync{Time: begun.Add(after), Incoming: true, Report: report}, at, nil, set)
	}
	sync := func(from time.Duration) {
		ended(from+time.Second, time.Second, stageSplit, reconcile.Report{Split: &reconcile.Split{}})
		ended(from+2*time.Second, time.Second, stagePart, reconcile.Report{Applied: 1})
		ended(from+4*time.Second, time.Second, stageWhole, reconcile.Report{Verified: true})
		ended(from+5*time.Second, 3*time.Second, stagePart, reconcile.Report{Applied: 2})
	}
	sync(0)
	sync(10 * time.Second)
	if len(h.list) != 2 {
		t.Fatalf("%d syncs are listed, want 2: %+v", len(h.list), h.list)
	}
	for i, s := range h.list {
		if took := s.Report.DurationMS; s.open || !s.Report.Verified || s.Report.Applied != 3 || s.Report.Parts != 2 || s.Report.PartsDone != 2 || took != 4000 {
			t.Errorf("sync %d is listed as %+v, open %t", i, s.Report, s.open)
		}
	}
}

// Syncs of two shards that run in parts at once are two syncs.
func TestPartsAreOfTheirShard(t *testing.T) {
	h := NewHistory(100)
	begun := time.Now()
	sets := []dbadapter.NamespaceID{{1}, {2}}
	for step := range 4 {
		for i, set := range sets {
			at, report := stagePart, reconcile.Report{Applied: i + 1}
			switch step {
			case 0:
				at, report = stageSplit, reconcile.Report{Split: &reconcile.Split{}}
			case 3:
				at, report = stageWhole, reconcile.Report{Verified: true}
			}
			report.Peer, report.Namespace = "peer", "notes"
			h.Follow(status.Sync{Time: begun.Add(time.Duration(step) * time.Second), Incoming: true, Report: report}, at, nil, set)
		}
	}
	if len(h.list) != len(sets) {
		t.Fatalf("%d syncs are listed: %+v", len(h.list), h.list)
	}
	for i, s := range h.list {
		if s.open || !s.Report.Verified || s.Report.Parts != 2 || s.Report.Applied != 2*(i+1) {
			t.Errorf("sync %d is listed as %+v, open %t", i, s.Report, s.open)
		}
	}
}
