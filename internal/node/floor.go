package node

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// errAnew: what the watermark rested on has changed meanwhile.
var errAnew = errors.New("the list of members has changed meanwhile")

// standing is what a conversation greets with, and what it may conclude at its end.
type standing struct {
	list  [16]byte
	tau   dbadapter.Timestamp
	floor dbadapter.Timestamp
	// basis is that of the watermark when tau was read.
	basis watermark.Basis
}

// stand reads what this node says with the snapshot that is taken next.
func (set *Set) stand(ctx context.Context) (s standing, err error) {
	w := &set.gc.mark
	set.gc.Lock()
	s.basis = w.Basis()
	set.gc.Unlock()
	if s.tau, err = set.tau(ctx); err != nil {
		return s, err
	}
	set.ns.updating.Lock()
	defer set.ns.updating.Unlock()
	set.gc.Lock()
	defer set.gc.Unlock()
	s.list, s.floor = set.lists(), w.Greeted()
	if !w.Still(s.basis) {
		s.tau = 0 // a reading from before a restamp, or a change of the list, says nothing under the list of now
	}
	return s, nil
}

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
	if c.stands.tau == 0 {
		return nil
	}
	removes, err := c.conclude(r)
	if err != nil || len(removes) == 0 {
		return err
	}
	outcomes, err := c.part.set.remove(ctx, removes, c.theirs.Floor, c.stands.basis)
	var done Swept
	for i, o := range outcomes {
		done.count(removes[i].Action, o)
	}
	r.Collected, r.SetAside = r.Collected+int(done.Collected), r.SetAside+int(done.SetAside)
	return err
}

// conclude notes the sync, and returns what is to leave this node.
func (c *Conversation) conclude(r *reconcile.Report) ([]dbadapter.Write, error) {
	set, tau := c.part.set, c.stands.tau
	set.ns.updating.Lock()
	defer set.ns.updating.Unlock()
	g := &set.gc
	counts, err := set.ended(c)
	if err != nil {
		return nil, nil //nolint:nilerr // what the conversation began with says nothing any more
	}
	if told, err := set.ns.parse(set.ns.state.Load().Removed); err == nil && told.Author == c.remote && counts {
		// What told of this node's removal is not in the list that both sides have.
		// So a copy from before has taken the place of its author. Another member
		// may just not have heard.
		if err := set.ns.forgetRemoval(); err != nil {
			return nil, err
		}
	}
	pledges := set.ns.pledges(c.remote)
	writes := pledges && set.ns.Members().Has(c.remote, RoleWrite)
	g.Lock()
	defer g.Unlock()
	if err := set.updateMarkLocked(func(w *watermark.Watermark) bool {
		return w.Synced(&watermark.Sync{
			Peer: c.remote, Writes: writes, Pledges: pledges, Basis: c.stands.basis,
			Incarnation: c.theirs.Incarnation, Tau: c.theirs.Tau, Floor: c.theirs.Floor,
			Clean: r.DeclinedCollectable == 0, Verified: r.Verified, Latest: set.Store.Latest(),
		}, tau)
	}); err != nil {
		return nil, err
	}
	switch {
	case len(r.DeclinedForFloor) == 0 || !writes && !g.mark.LeftToReaders(func(id ID) bool { return set.ns.Members().Has(id, RoleWrite) }) || c.theirs.Floor == 0 || c.theirs.Floor == watermark.NoFloor:
		return nil, nil
	case !g.mark.Proven(c.theirs.Floor, tau):
		g.mark.DeclinedFor(c.theirs.Floor, tau)
		set.ns.Control.equal.Forget(c.remote) // it has heard pledges by which it is
		return nil, nil
	}
	return c.declinedForFloor(r.DeclinedForFloor)
}

// ended notes that a sync has ended well, and reports whether the members wait for this node. The
// error is errAnew if what the sync began with says nothing any more.
func (set *Set) ended(c *Conversation) (counts bool, err error) {
	g := &set.gc
	g.Lock()
	defer g.Unlock()
	if !g.mark.Still(c.stands.basis) {
		return false, errAnew
	}
	if g.synced == nil {
		g.synced = map[ID]time.Time{}
	}
	g.synced[c.remote] = set.ns.node.Now()
	return g.mark.Counts(), nil
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
			} else if ok && !set.Present(&r.Record) && !d.Before {
				continue // the peer may have collected it since it greeted
			}
			removes = append(removes, dbadapter.Write{Record: *r, Action: action})
		}
	}
	return removes, nil
}
