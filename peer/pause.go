package peer

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/syncd-io/syncd/internal/node"
)

// Pause takes the namespace out of all syncs on this node, until Resume, also after a restart. This node
// begins none, and a member that begins one gets ErrPaused. Syncs that run are cut; what they have applied
// stays. Reads and writes go on, also those that members of a namespace cut into shards ask of one another. A
// shard that moves to this node goes on moving after Resume. Pause returns when no sync of the namespace runs
// any more: do not call it from SyncOptions.Progress.
func (ns *Namespace) Pause(ctx context.Context) error {
	return ns.manage(ctx, "pause syncs", func(ctx context.Context) error {
		if err := ns.core.SetPaused(true); err != nil {
			return err
		}
		return ns.node.engaged.cut(ctx, func(e *engagement) bool { return e.ns == ns })
	})
}

// Resume lets the namespace take part in syncs again.
func (ns *Namespace) Resume(ctx context.Context) error {
	return ns.manage(ctx, "resume syncs", func(context.Context) error { return ns.core.SetPaused(false) })
}

// PausePeer ends the syncs with a peer in all namespaces, until ResumePeer, also after
// a restart, as Pause does for a namespace. The peer may still redeem a ticket.
// ErrNotFound: Peers does not list it.
func (n *Node) PausePeer(ctx context.Context, id ID) error {
	return n.setPaused(ctx, "pause peer", id, true)
}

// ResumePeer lets this node sync with a peer again. ErrNotFound: Peers does not list it.
func (n *Node) ResumePeer(ctx context.Context, id ID) error {
	return n.setPaused(ctx, "resume peer", id, false)
}

func (n *Node) setPaused(ctx context.Context, what string, id ID, paused bool) error {
	return n.within(ctx, what+" "+id.String(), func(ctx context.Context) (err error) {
		if !n.book.Paused(id) { // a peer that was removed may be paused
			err = n.mustKnow(id)
		}
		if err == nil {
			err = n.book.Pause(id, paused)
		}
		if err == nil && paused {
			err = n.engaged.cut(ctx, func(e *engagement) bool { return e.remote == id })
		}
		if err != nil {
			return err
		}
		n.core.Schedule.Wake()
		if pushes := n.mesh(); pushes != nil {
			pushes.Renew(id)
		}
		return nil
	})
}

// engagement is a sync that runs, begun by either side.
type engagement struct {
	ns     *Namespace
	remote ID
	cancel context.CancelCauseFunc
	over   chan struct{} // closed at its end
}

// engagements are the syncs that run, so that a pause can cut them.
type engagements struct {
	mu  sync.Mutex // taken before the lock of the address book
	all map[*engagement]struct{}
}

// engage begins a sync with a peer, unless it is paused: then the error is ErrPaused. The
// context is over when a pause cuts the sync. end must be called at its end.
func (ns *Namespace) engage(ctx context.Context, remote ID) (_ context.Context, end func(), err error) {
	of := &ns.node.engaged
	of.mu.Lock()
	defer of.mu.Unlock()
	// Under the lock: a pause is durable before it looks for what to cut.
	if err := ns.core.PausedWith(node.ID(remote)); err != nil {
		return nil, nil, err
	}
	e := &engagement{ns: ns, remote: remote, over: make(chan struct{})}
	ctx, e.cancel = context.WithCancelCause(ctx)
	if of.all == nil {
		of.all = map[*engagement]struct{}{}
	}
	of.all[e] = struct{}{}
	return ctx, func() {
		of.mu.Lock()
		defer of.mu.Unlock()
		delete(of.all, e)
		e.cancel(nil)
		close(e.over)
	}, nil
}

// cut ends the syncs that match, and waits for them.
func (of *engagements) cut(ctx context.Context, match func(*engagement) bool) error {
	of.mu.Lock()
	var ending []*engagement
	for e := range of.all {
		if match(e) {
			e.cancel(cmp.Or(e.ns.core.PausedWith(node.ID(e.remote)), ErrPaused)) // resumed already
			ending = append(ending, e)
		}
	}
	of.mu.Unlock()
	for _, e := range ending {
		select {
		case <-e.over:
		case <-ctx.Done():
			return fmt.Errorf("paused, and waiting for the end of a sync: %w", ctx.Err())
		}
	}
	return nil
}
