package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
)

// Collection says how far the collection is, and what holds it back.
func (set *Set) Collection() watermark.Collection {
	set.gc.Lock()
	defer set.gc.Unlock()
	return set.gc.mark.Collection(&set.gc.waiting, dbadapter.Timestamp(set.ns.clock.Latest()), set.gc.synced)
}

// Collect takes out what all members are past, without waiting for the background,
// and tells the members what this node holds.
func (set *Set) Collect(ctx context.Context) (Swept, error) {
	if err := set.pledge(ctx); err != nil {
		return Swept{}, err
	}
	return set.sweep(ctx)
}

// tend does what has become due in the collection.
func (set *Set) tend(ctx context.Context) (swept Swept, err error) {
	set.gc.Lock()
	back := !set.gc.mark.Counts()
	saved := set.updateMarkLocked((*watermark.Watermark).RecoverAlone)
	set.gc.Unlock()
	var failed error
	if back && !set.ns.recovers() { // a member returns with all of its sets
		failed = set.ns.Return(ctx) // of no effect unless this node has lapsed
	}
	if set.mayPledge() {
		failed = errors.Join(failed, set.pledge(ctx))
	}
	tau, err := set.tau(ctx)
	if err != nil || tau == 0 {
		return swept, errors.Join(saved, failed, err)
	}
	set.gc.Lock()
	mark := set.gc.mark.At(tau)
	set.gc.Unlock()
	if !set.gc.waiting.SweepDue(mark, set.ns.node.Now(), false) {
		return swept, errors.Join(saved, failed)
	}
	swept, err = set.sweep(ctx)
	if errors.Is(err, errAnew) {
		err = nil
	}
	if set.mayPledge() {
		failed = errors.Join(failed, set.pledge(ctx))
	}
	return swept, errors.Join(saved, failed, err)
}

// sweep takes out what all members are past.
func (set *Set) sweep(ctx context.Context) (Swept, error) {
	set.sweeping.Lock()
	defer set.sweeping.Unlock()
	return set.sweepLocked(ctx)
}

// keepUp begins no sync with a peer that has collected what this node still holds
// and could collect, too. All of it would count as a difference, travel to the peer
// and be declined there. This node collects first, and the initiator tries again.
func (c *Conversation) keepUp(ctx context.Context) error {
	set := c.part.set
	if !c.conclusive() || c.ask.ListsMayDiffer || !set.behind(c.theirs.Floor) {
		return nil
	}
	c.collect = func() error {
		if !set.sweeping.TryLock() {
			return nil // it is being done
		}
		defer set.sweeping.Unlock()
		if !set.gc.waiting.SweepDue(c.theirs.Floor, set.ns.node.Now(), true) {
			return nil // it has been done
		}
		if _, err := set.sweepLocked(ctx); !errors.Is(err, errAnew) {
			return err
		}
		return nil
	}
	return fmt.Errorf("%w: this node first collects what the peer has collected already", reconcile.ErrBusy)
}

// behind reports whether a peer's floor shows that it has collected what this node
// holds, and all members are past.
func (set *Set) behind(floor dbadapter.Timestamp) bool {
	if !set.gc.waiting.SweepDue(floor, set.ns.node.Now(), true) {
		return false // sweeps for others, too, take a part of the time only
	}
	set.gc.Lock()
	defer set.gc.Unlock()
	w := &set.gc.mark
	return floor != watermark.NoFloor && floor > w.State().Floor && floor <= w.At(dbadapter.Timestamp(set.ns.clock.Latest()))
}
