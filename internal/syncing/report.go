package syncing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Proved is the error of a sync that ran to its end and did not make the two
// sets equal: ErrRejected where one side declined records, ErrNotVerified where
// the proof is missing. A dry run, and a sync of one direction that left records
// for the other, have not tried to.
func Proved(a Ask, r *reconcile.Report) error {
	switch {
	case r.Verified || a.DryRun || r.Split != nil:
		return nil
	case r.Rejected > 0:
		return fmt.Errorf("%w: %s", ErrRejected, rejected(r))
	case a.Direction != wire.Both:
		return nil
	}
	return reconcile.ErrNotVerified
}

// rejected says how many records each side declined, and why.
func rejected(r *reconcile.Report) string {
	var parts []string
	if n := r.DeclinedThere.Sum(); n > 0 {
		parts = append(parts, fmt.Sprintf("the peer declines %d of this node's (%s)", n, r.DeclinedThere))
	}
	if n := r.DeclinedHere.Sum(); n > 0 {
		parts = append(parts, fmt.Sprintf("this node declines %d of the peer's (%s)", n, r.DeclinedHere))
	}
	if r.DeclinedThere[wire.ReasonClock] > 0 {
		parts = append(parts, "is this machine's clock right?")
	}
	return strings.Join(parts, "; ")
}

// forecast says what the whole is expected to cost, of the report of the parts that are
// over.
func forecast(r *reconcile.Report) {
	found := int64(r.Differences())
	if left := r.Estimate - found; left > 0 && found > 0 {
		r.ForecastBytes += int64(float64(r.ForecastBytes) / float64(found) * float64(left))
	}
}

// Sum adds up two conversations of one sync. Names, method and estimate are those of
// the first.
func Sum(a, b reconcile.Report) reconcile.Report {
	t := a
	t.Rounds += b.Rounds
	t.Cells += b.Cells
	t.SketchBytes += b.SketchBytes
	t.Working += b.Working
	t.RecordBytes += b.RecordBytes
	t.WireBytesSent += b.WireBytesSent
	t.WireBytesReceived += b.WireBytesReceived
	t.MissingHere += b.MissingHere
	t.MissingThere += b.MissingThere
	t.Mismatched += b.Mismatched
	t.Keys += b.Keys
	t.MoreKeys = t.MoreKeys || b.MoreKeys
	t.Applied += b.Applied
	t.Sent += b.Sent
	t.Rejected += b.Rejected
	for why := range t.DeclinedHere {
		t.DeclinedHere[why] += b.DeclinedHere[why]
		t.DeclinedThere[why] += b.DeclinedThere[why]
	}
	t.DeclinedCollectable += b.DeclinedCollectable
	t.DeclinedForFloor = b.DeclinedForFloor
	t.Theirs = b.Theirs
	t.Collected += b.Collected
	t.SetAside += b.SetAside
	t.Repair = a.Repair.Plus(b.Repair)
	t.Listed = slices.Concat(a.Listed, b.Listed)
	t.Listed = t.Listed[:min(len(t.Listed), reconcile.NamedRanges)]
	t.ForecastBytes += max(b.ForecastBytes, b.WireBytesSent+b.WireBytesReceived)
	t.DurationMS += b.DurationMS
	t.StepsMS = maps.Clone(a.StepsMS)
	for step, ms := range b.StepsMS {
		if t.StepsMS == nil {
			t.StepsMS = map[string]float64{}
		}
		t.StepsMS[step] += ms
	}
	return t
}
