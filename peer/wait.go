package peer

import (
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// WaitOptions say what to wait for. The zero value waits until all other members hold what
// this node holds.
type WaitOptions struct {
	// Peers are the members that are asked; without any, all others that have not lapsed.
	Peers []ID
	// Count is how many of these are enough; 0 means all.
	Count int
	// Key, if not nil, narrows the wait to one key. It is for Version of it or, where
	// that is zero, for the one that this node holds.
	Key     []byte
	Version dbadapter.Version
}

// Wait waits until members hold, durably, what this node held when the wait began, or
// later versions of it. A member is asked whether it does, and answers as soon as that is
// so, as pushes bring it there. In a wait for everything a sync begins if that takes long.
// When the context is over first, the error is ErrUnconfirmed, and what was found
// is returned with it.
//
// In a namespace that is cut into shards the members that count are the other hosts of a
// shard, by the layout when the wait begins. A wait for a key is for the hosts of its shard,
// all or Count of them. Without a Version, it is for what a read finds here. A host that
// lacks the record is given it. A wait for everything is for each shard that this node holds.
// It lasts until the shard's other hosts, or Count of them, hold what this node holds of it.
// What this node wrote to other shards is not here. It is waited for by its key, or as it is
// written (Ack).
func (ns *Namespace) Wait(ctx context.Context, o WaitOptions) (found status.Waited, err error) {
	err = ns.within(ctx, "wait in", func(ctx context.Context) (err error) {
		if found, err = ns.wait(ctx, &o); errors.Is(err, ErrUnconfirmed) && errors.Is(context.Cause(ctx), ErrClosed) {
			err = ErrClosed
		}
		return err
	})
	return found, err
}

func (ns *Namespace) wait(ctx context.Context, o *WaitOptions) (status.Waited, error) {
	named := nodeIDs(o.Peers)
	switch {
	case ns.core.Rule() == nil:
	case o.Key != nil:
		return ns.hosts.WaitKey(ctx, o.Key, o.Version, named, o.Count, ns.lookUp)
	default:
		var sets []*node.Set
		for _, sh := range ns.shards() {
			sets = append(sets, sh.set)
		}
		return ns.hosts.WaitHeld(ctx, sets, named, o.Count, func(ctx context.Context, set *node.Set, w *ask.Awaiting) {
			if sh := ns.node.shard(set); sh != nil { // nil: it is closed meanwhile
				ctx, cancel := bind(ctx, sh.ctx)
				defer cancel()
				sh.await(ctx, w, nil)
			}
		})
	}
	w, err := ask.NewAwaiting(ns.core, named, o.Count)
	if err != nil {
		return status.Waited{}, err
	}
	sh := ns.shards()[0]
	var about *wire.AskKey // nil: everything
	if o.Key != nil {
		if about, err = ask.VersionQuestion(sh.set, o.Key, o.Version); err != nil {
			return status.Waited{}, err
		}
	}
	sh.await(ctx, w, about)
	return w.End()
}

// await asks the members until as many hold it as are asked for, or the context is over.
func (sh *shard) await(ctx context.Context, w *ask.Awaiting, about *wire.AskKey) {
	w.Run(ctx, func(ctx context.Context, id node.ID, heard func(error)) {
		ask.Await(ctx, waiting{sh}, sh.set, id, about, heard)
	})
}

// waiting is the network of a shard's waits, as package ask sees it.
type waiting struct{ sh *shard }

func (w waiting) Now() time.Duration { return w.sh.ns.node.awake.Elapsed() }

func (w waiting) Ask(ctx context.Context, id node.ID, patience time.Duration, q wire.Question) (*wire.Reply, error) {
	a, err := w.sh.ask(ctx, ID(id), patience, q)
	return a.Reply, err
}

func (w waiting) Sync(ctx context.Context, id node.ID, shared bool) (verified bool, err error) {
	if shared {
		done := w.sh.carrying.DoChan(string(id), func() (any, error) {
			return w.sh.sync(ctx, ID(id), SyncOptions{}) // it ends with this wait; others then begin one of their own
		})
		select {
		case of := <-done:
			return false, of.Err
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	report, err := w.sh.sync(ctx, ID(id), SyncOptions{})
	return report.Verified, err
}

func (w waiting) Sleep(ctx context.Context, d time.Duration) error { return machine.Sleep(ctx, d) }
