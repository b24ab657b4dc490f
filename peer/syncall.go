package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// syncAll syncs several shards that the peer is to hold, too, one after the other. Where the
// two share none, it syncs the list of members, which proves nothing about records. The
// report is the sum of those that the peer holds. It is verified if the peer holds all of
// them, each was verified, and this node has taken all that it is to hold with the peer.
func (ns *Namespace) syncAll(ctx context.Context, id ID, o SyncOptions, all []*shard) (sum reconcile.Report, err error) {
	if len(all) == 0 {
		return ns.syncMembers(ctx, id, o)
	}
	var failed, denied error
	synced := 0
	told := o.Progress
	for _, sh := range all {
		before := sum
		if told != nil && synced > 0 {
			o.Progress = func(r reconcile.Report) { told(added(before, r)) }
		}
		report, err := sh.sync(ctx, id, o)
		if errors.Is(err, ErrDenied) {
			denied = err // the peer does not hold this shard, or is no member
			continue
		}
		if synced++; synced == 1 {
			sum = report
		} else {
			sum = added(before, report)
		}
		failed = errors.Join(failed, err)
		if errors.Is(err, ErrUnreachable) || errors.Is(err, ErrPaused) || ctx.Err() != nil || ns.ctx.Err() != nil {
			break
		}
	}
	if synced == 0 { // the list of members tells which of the two it is
		o.Progress = nil
		if sum, err = ns.sync(ctx, nil, id, o); err != nil && !errors.Is(err, ErrRejected) && !errors.Is(err, ErrNotVerified) {
			return reconcile.Report{Namespace: ns.Name(), Peer: id.String()}, err
		}
		sum.MembersOnly = true
	}
	lacking := ns.lacking(id)
	if denied != nil || lacking {
		sum.Verified = false
		verb, kind := "sync", ErrNotVerified
		if o.DryRun {
			verb, kind = "diff", ErrBusy // what was not compared is not told to be the same
		}
		if failed == nil {
			what := "that node does not hold yet, or holds no more, a shard which its hosts are to hold"
			if lacking {
				what = "this node does not hold yet a shard which it is to hold, and which that node holds or is to hold"
			}
			failed = fmt.Errorf("%s %s with %s: %w: %s; try again in a while", verb, ns.Name(), id, kind, what)
		}
	}
	return sum, failed
}

// lacking reports whether a shard that a peer holds, or is to hold, is one that this node is to
// hold and has not taken yet. Nothing of such a shard was compared.
func (ns *Namespace) lacking(id ID) bool {
	take, _ := ns.core.Moves()
	return slices.ContainsFunc(take, func(number placement.Shard) bool { return slices.Contains(ns.core.Holders(number), node.ID(id)) })
}

// syncMembers syncs the list of members with a peer that holds none of this node's shards.
func (ns *Namespace) syncMembers(ctx context.Context, id ID, o SyncOptions) (reconcile.Report, error) {
	if o.DryRun {
		report := reconcile.Report{Namespace: ns.Name(), Peer: id.String()}
		err := ns.core.MayCall(node.ID(id))
		if err == nil {
			err = fmt.Errorf("%w: that node holds no shard that this one holds, so that there is nothing to compare; syncd ns layout %s shows the hosts", ErrInvalid, ns.Name())
		}
		return report, fmt.Errorf("diff %s with %s: %w", ns.Name(), id, err)
	}
	report, err := ns.sync(ctx, nil, id, o)
	report.MembersOnly, report.Verified = true, false // of the members' list, and not of records
	return report, err
}

// added is the report of some shards with that of a further one.
func added(of, further reconcile.Report) reconcile.Report {
	sum := syncing.Sum(of, further)
	sum.Verified = of.Verified && further.Verified
	sum.Parts, sum.PartsDone = of.Parts+further.Parts, of.PartsDone+further.PartsDone
	sum.Estimate = of.Estimate + further.Estimate
	return sum
}
