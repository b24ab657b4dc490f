package peer

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// conditionsAtOnce keys of a batch are looked up at once.
const conditionsAtOnce = 8

// lookUpConditions looks up the keys of a batch that are written on a condition, where this host is not sure of
// what it holds: another one may have acknowledged a later version. The conditions are then about the latest of
// what was found and of what is held here. All look-ups have the time of one.
func (ns *Namespace) lookUpConditions(ctx context.Context, sh *shard, drafts []node.Draft) error {
	var items []int
	for i := range drafts {
		if drafts[i].If != nil {
			items = append(items, i)
		}
	}
	if len(items) == 0 || ns.core.Rule() == nil || sh.set.Current() && !ns.doubted(drafts, items) {
		return nil
	}
	ctx, unbind := ns.bind(ctx)
	defer unbind()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	over := ns.node.deadline(ctx)
	next := make(chan int)
	var running sync.WaitGroup
	for range min(len(items), conditionsAtOnce) {
		running.Go(func() {
			for i := range next {
				drafts[i].Heeded = ns.core.Recall(drafts[i].Record.Key, ns.steady()).Own
				found, err := ns.lookUpRested(ctx, over, drafts[i].Record.Key)
				if err == nil {
					err = ns.meetsCondition(&drafts[i], &found)
				}
				if err != nil {
					fail(&node.ItemError{Item: i, Held: heldInstead(&found, err), Err: err})
				}
			}
		})
	}
	for _, i := range items {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	running.Wait()
	return context.Cause(ctx)
}

// doubted reports whether this host's copy may be behind what this node has written to one of the keys before it
// was a host.
func (ns *Namespace) doubted(drafts []node.Draft, items []int) bool {
	return slices.ContainsFunc(items, func(i int) bool {
		return ns.core.Recall(drafts[i].Record.Key, ns.steady()).Rests()
	})
}

// meetsCondition says whether a draft may follow what its key was found to hold, which it then has seen.
func (ns *Namespace) meetsCondition(d *node.Draft, found *lookedUp) error {
	if err := ns.core.Remote(d.Record.Key).Holds(*d, false, found); err != nil {
		return err
	}
	d.Seen = []*dbadapter.Record{found.Record}
	return nil
}

// heldInstead is the version for which a condition does not hold.
func heldInstead(found *lookedUp, err error) (v dbadapter.Version) {
	if errors.Is(err, dbadapter.ErrConflict) && found.Record != nil {
		v = found.Record.Version
	}
	return v
}
