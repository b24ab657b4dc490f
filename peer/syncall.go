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
func (ns *Namespace) syncAll(ctx context.Context, id ID, o SyncOptions, all []*shard) (reconcile.Report, error) {
	if len(all) == 0 {
		return ns.syncMembers(ctx, id, o)
	}
	ctx, cancel := bind(ctx, ns.ctx)
	defer cancel()
	sum, synced, denied, failed := syncing.All(ctx, all, o.Progress, func(sh *shard, progress func(reconcile.Report)) (reconcile.Report, error) {
		o.Progress = progress
		return sh.sync(ctx, id, o)
	})
	if synced == 0 { // the list of members tells which of the two it is
		o.Progress = nil
		var err error
		if sum, err = ns.sync(ctx, nil, id, o); err != nil && !errors.Is(err, ErrRejected) && !errors.Is(err, ErrNotVerified) {
			return reconcile.Report{Namespace: ns.Name(), Peer: id.String()}, err
		}
		sum.MembersOnly = true
	}
	lacking := ns.lacking(id)
	if denied > 0 || lacking {
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
