package peer

import (
	"context"
	"errors"

	"github.com/syncd-io/syncd/internal/node"
)

// syncAll syncs several shards that the peer is to hold, too, one after the other; and where
// the two share none, the list of members. The report is the sum of those that the peer
// holds, and verified if each of them was.
func (ns *Namespace) syncAll(ctx context.Context, id ID, o SyncOptions, all []*shard) (sum Report, err error) {
	if len(all) == 0 {
		return ns.sync(ctx, nil, id, o)
	}
	var failed, denied error
	synced := 0
	told := o.Progress
	for _, sh := range all {
		before := sum
		if told != nil && synced > 0 {
			o.Progress = func(r Report) { told(added(before, r)) }
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
	if synced == 0 {
		return Report{Namespace: ns.Name(), Peer: id.String()}, denied
	}
	return sum, failed
}

// added is the report of some shards with that of a further one.
func added(of, further Report) Report {
	sum := node.Sum(of, further)
	sum.Verified = of.Verified && further.Verified
	sum.Parts, sum.PartsDone = of.Parts+further.Parts, of.PartsDone+further.PartsDone
	sum.Estimate = of.Estimate + further.Estimate
	return sum
}
