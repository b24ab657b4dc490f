package syncing

import (
	"context"
	"errors"

	"github.com/syncd-io/syncd/reconcile"
)

// All syncs several parts with one peer, one after the other. sum is the report of those that
// were synced. A part that the peer denies is left out: the peer does not hold it, or is no
// member. What would fail for each part ends it. sync passes progress on to Run, which may be
// nil.
func All[P any](ctx context.Context, parts []P, progress func(reconcile.Report), sync func(p P, progress func(reconcile.Report)) (reconcile.Report, error)) (sum reconcile.Report, synced, denied int, failed error) {
	for _, p := range parts {
		before, of := sum, progress
		if progress != nil && synced > 0 {
			of = func(r reconcile.Report) { progress(added(before, r)) }
		}
		report, err := sync(p, of)
		if errors.Is(err, reconcile.ErrDenied) {
			denied++
			continue
		}
		if synced++; synced > 1 {
			report = added(before, report)
		}
		sum, failed = report, errors.Join(failed, err)
		if errors.Is(err, reconcile.ErrUnreachable) || errors.Is(err, reconcile.ErrPaused) || ctx.Err() != nil {
			break
		}
	}
	return sum, synced, denied, failed
}

// added is the report of some parts with that of a further one.
func added(of, further reconcile.Report) reconcile.Report {
	sum := Sum(of, further)
	sum.Verified = of.Verified && further.Verified
	sum.Parts, sum.PartsDone = of.Parts+further.Parts, of.PartsDone+further.PartsDone
	sum.Estimate = of.Estimate + further.Estimate
	return sum
}
