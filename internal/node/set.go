package node

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/gc"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Set is a set of records of a namespace that is synced, pushed and collected by
// itself. It has what the node has decided about that set. The records are in the
// part that it embeds; members, clock and state are the namespace's.
type Set struct {
	Part

	shard placement.Shard // 0 in a namespace without shards
	// committed, if not nil, is told after each commit.
	committed func(*Set)
	rejected  refusals.Rejections
	askers    askers
	watched   changes.Source
	gc        *gc.Collector
	bulk      syncing.BulkTurn
	reach     reach
	pushes    *push.Pusher
	tenure    tenure
	// log: the set was left, and is there for its kept log. emptied: its records are deleted.
	log     bool
	emptied atomic.Bool
}

// Shard is the set's number among the shards of the namespace; 0 if that has none.
func (set *Set) Shard() placement.Shard { return set.shard }

// open opens the set's records.
func (set *Set) open(ctx context.Context, ns *Namespace, keys reconcile.Keys) error {
	set.Part.set, set.committed = set, ns.lifecycle.committed
	set.tenure.host.Self = ns.node.ID
	set.pushes = push.New(push.Source{
		Config: &ns.node.Push, Self: ns.node.ID, Incarnation: ns.incarnation, Interval: ns.node.interval,
		Now: ns.node.elapsed, Jitter: func(d time.Duration) time.Duration { return ns.node.jittered(d, ForPush) },
		Digests: set.digests, Paused: ns.Paused,
		Members: func() push.Members { return ns.Members() }, Others: set.others, Admits: ns.Admits, With: set.With,
		Failed: syncing.Failed, Wake: set.pushable,
	})
	if err := set.Part.open(ctx, ns, keys, ns.lifecycle.store); err != nil {
		return err
	}
	set.gc = set.newCollector()
	set.watched = changes.Source{Store: set.Store, Hasher: set.Keys.Hasher, Live: set.Live, Now: ns.node.Now, Reserved: ns.reserved, Behind: ns.BehindReserved}
	return nil
}

// Pushes are what the set pushes, and the syncs that pushes bring about.
func (set *Set) Pushes() *push.Pusher { return set.pushes }

// pushable tells the driver to ask Pushes for a step.
func (set *Set) pushable() {
	if set.ns.node.Pushable != nil {
		set.ns.node.Pushable(set)
	}
}

// digests are those of the set and of the control namespace.
func (set *Set) digests() (s wire.Sets) {
	s.Data, _, _ = set.Live.State()
	s.Control, _, _ = set.ns.Control.Live.State()
	return s
}

// Watched is the set as watches see it.
func (set *Set) Watched() *changes.Source { return &set.watched }

// observe is told of each commit.
func (set *Set) observe(changes []dbadapter.Change) {
	if set.tenure.ended() { // the records are being deleted
		return
	}
	set.wakeAskers(changes)
	if set.committed != nil {
		set.committed(set)
	}
	set.pushes.Changed()
}

// Sum is that of what is held durably.
func (set *Set) Sum() dbadapter.Sum {
	digest, records, _ := set.Live.State()
	return dbadapter.Sum{Records: records, Digest: digest}
}

// Status is what this node would answer a member that asks how it is: what it knows of the
// records, and what its driver does of the rest.
func (set *Set) Status() *wire.StatusAnswer {
	a := &wire.StatusAnswer{Sum: set.Sum(), Newest: set.Store.Latest()}
	if set.ns.describe != nil {
		set.ns.describe(a)
	}
	return a
}

// Recovers reports whether the node may lack what it, or the members, once held of the set.
func (set *Set) Recovers() bool { return set.gc.Recovering() }
