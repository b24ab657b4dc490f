package node

import (
	"bytes"
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/gc"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// believe is a peer's greeting with what this node can take for true. That is a
// reading of a clock that this node's versions can follow.
func (ns *Namespace) believe(theirs wire.Greeting) wire.Greeting {
	if !ns.Follow(theirs.Tau) {
		theirs.Tau = 0
	}
	return theirs
}

// Follow has this node's next version be later than a reading of a clock, if it can follow that.
func (ns *Namespace) Follow(at dbadapter.Timestamp) bool {
	if hlc.Check(at.Time(), ns.node.Now(), ns.Members().Policy().MaxSkew) != nil {
		return false
	}
	ns.clock.Observe(hlc.Timestamp(at))
	return true
}

// settle concludes what a sync of the whole namespace has shown, both ways and
// under one list. What the peer holds is known. What it declined for its floor
// leaves this node, too, if the floor is proven.
//
// It rests on the reading of the clock that the conversation began with. A later
// reading would prove no more but floors beyond a promise that this node has made
// meanwhile. It would cost the lock of all commits, and perhaps a durable write,
// once more.
func (c *Conversation) settle(ctx context.Context, r *reconcile.Report) error {
	if c.stands.Tau == 0 {
		return nil
	}
	removes, err := c.conclude(r)
	if err != nil || len(removes) == 0 {
		return err
	}
	done, err := c.part.set.gc.Remove(ctx, removes, c.theirs.Floor, c.stands.Basis)
	r.Collected, r.SetAside = r.Collected+int(done.Collected), r.SetAside+int(done.SetAside)
	return err
}

// conclude notes the sync, and returns what is to leave this node.
func (c *Conversation) conclude(r *reconcile.Report) (removes []dbadapter.Write, err error) {
	set := c.part.set
	h := set.ns.Hold()
	defer h.Release()
	counts, err := set.gc.Ended(c.remote, c.stands.Basis)
	if err != nil {
		return nil, nil //nolint:nilerr // what the conversation began with says nothing any more
	}
	if counts && h.RemovedBy(c.remote) {
		// What told of this node's removal is not in the list that both sides have.
		// So a copy from before has taken the place of its author. Another member
		// may just not have heard.
		if err := h.ForgetRemoval(); err != nil {
			return nil, err
		}
	}
	pledges, writes := set.ns.pledges(c.remote), func(id ID) bool { return set.ns.Members().Has(id, RoleWrite) }
	verdict, err := set.gc.Synced(&watermark.Sync{
		Peer: c.remote, Writes: pledges && writes(c.remote), Pledges: pledges, Basis: c.stands.Basis,
		Incarnation: c.theirs.Incarnation, Tau: c.theirs.Tau, Floor: c.theirs.Floor,
		Clean: r.DeclinedCollectable == 0, Verified: r.Verified, Latest: set.Store.Latest(),
	}, c.stands.Tau, len(r.DeclinedForFloor) > 0, writes)
	switch {
	case err != nil:
		return nil, err
	case verdict == gc.FloorUnproven:
		set.ns.Control.equal.Forget(c.remote) // it has received pledges by which it is
		return nil, nil
	case verdict == gc.FloorIgnored:
		return nil, nil
	}
	return c.declinedForFloor(r.DeclinedForFloor)
}

// declinedForFloor is the removal of what the peer's floor has left behind. What
// was deleted, or has expired, goes; what is alive is set aside for a person. What
// has expired later than the floor that the peer greeted with waits for its next
// greeting. If the peer had collected it, that greeting tells of it. If not, the
// floor may wait for this node, and the record is set aside: by another clock it
// may be alive.
func (c *Conversation) declinedForFloor(declined []reconcile.Declining) (removes []dbadapter.Write, err error) {
	set := c.part.set
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	for _, d := range declined {
		records, err := snap.Bucket(d.Index)
		if err != nil {
			return nil, err
		}
		for i := range records {
			r := &records[i]
			if r.Version.Clock > c.theirs.Floor || r.Version != d.Version || !bytes.Equal(r.Key, d.Key) {
				continue
			}
			action := dbadapter.SetAside
			if at, ok := r.Due(); ok && at <= c.theirs.Floor {
				action = dbadapter.Collect
			} else if ok && !set.ns.Present(&r.Record) && !d.Before {
				continue // the peer may have collected it since it greeted
			}
			removes = append(removes, dbadapter.Write{Record: *r, Action: action})
		}
	}
	return removes, nil
}

// keepUp begins no sync with a peer that has collected what this node still holds
// and could collect, too. All of it would count as a difference, travel to the peer
// and be declined there. This node collects first, and the initiator tries again.
func (c *Conversation) keepUp(ctx context.Context) error {
	set := c.part.set
	if !c.conclusive() || c.ask.ListsMayDiffer || !set.gc.Behind(c.theirs.Floor) {
		return nil
	}
	c.collect = func() error { return set.gc.CatchUp(ctx, c.theirs.Floor) }
	return fmt.Errorf("%w: this node first collects what the peer has collected already", reconcile.ErrBusy)
}
