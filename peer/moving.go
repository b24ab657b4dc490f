package peer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
)

// moving is what the coming and going of a namespace's shards needs. Which come and go
// internal/node decides.
type moving struct {
	soon  atomic.Bool // a look is on its way
	later *time.Timer // to the next look; guarded by the node's changing
}

// begin drives a set that is open, from now on.
func (ns *Namespace) begin(set *node.Set) *shard {
	sh := ns.openShard(set)
	all := append(slices.Clone(ns.shards()), sh)
	slices.SortFunc(all, func(a, b *shard) int { return int(a.set.Shard()) - int(b.set.Shard()) })
	ns.held.Store(&all)
	return sh
}

// moveSoon looks for shards that are to come or go, once for all that asks for it meanwhile:
// where they are to be may have changed.
func (ns *Namespace) moveSoon() {
	if ns.core.Rule() == nil || ns.moving.soon.Swap(true) {
		return
	}
	ns.node.soon(func() {
		ns.moving.soon.Store(false)
		if ns.enter("move") != nil {
			return // it is being closed
		}
		defer ns.gate.leave()
		ns.move()
	})
}

// relisted looks for shards soon where a layout may be due, or shards may be to come or go, and
// begins a round of syncs at once where a row asks for them. The namespace's locks are held.
func (n *Node) relisted(core *node.Namespace) {
	n.soon(func() {
		if ns := n.namespaceByID(core.ID()); ns != nil {
			if core.Seeks() {
				machine.Wake(n.hurried)
			}
			ns.moveSoon()
		}
	})
}

// arrange states the layout if that is due, says which shards this node holds, and looks again
// when a layout will be due. The node's changing is held.
func (ns *Namespace) arrange() {
	wait, stated, err := ns.core.Arrange(ns.ctx)
	if err != nil {
		ns.unmoved("the layout of the shards, or which of them this node holds, could not be stated, and is tried again", err)
	}
	if stated {
		machine.Wake(ns.node.hurried)
	}
	if ns.moving.later != nil {
		ns.moving.later.Stop()
	}
	if wait > 0 {
		ns.moving.later = time.AfterFunc(wait, ns.moveSoon)
	}
}

// move opens the shards that this node is to hold, and drops those that it may leave. An
// open namespace is inside its gate.
func (ns *Namespace) move() {
	if ns.core.Rule() == nil {
		return
	}
	n := ns.node
	n.changing.Lock() // the store is not backed up meanwhile, and the namespace not dropped
	defer n.changing.Unlock()
	if ns.ctx.Err() != nil {
		return
	}
	defer ns.arrange()
	take, leave := ns.core.Moves()
	for _, number := range take {
		set, err := ns.core.TakeShard(ns.ctx, number)
		if err != nil {
			ns.unmoved("a shard that this node is to take could not be opened, and is tried again", err)
			continue
		}
		sh := ns.begin(set)
		sh.push(n.mesh())
		n.log.Info("this node holds a further shard", logNamespace(ns), logShard(number))
	}
	if len(take) > 0 {
		machine.Wake(n.hurried)
	}
	for _, set := range leave {
		if err := ns.core.Leave(set); errors.Is(err, reconcile.ErrBusy) {
			continue // a record has come meanwhile; it is handed over first
		} else if err != nil {
			ns.unmoved("a shard that this node need not hold could not be left, and is tried again", err)
			continue
		}
		ns.forget(set)
	}
	for _, set := range ns.core.Discards() {
		if err := n.met(ns.core.Discard(context.WithoutCancel(ns.ctx), set)); err != nil {
			ns.unmoved("the records of a shard that was left could not be deleted, and it is tried again", err)
			continue
		}
		n.log.Info("this node has handed a shard over, and holds it no longer", logNamespace(ns), logShard(set.Shard()), slog.Int("kept", set.Kept()))
	}
}

func logShard(number placement.Shard) slog.Attr { return slog.Int("shard", int(number)) }

// unmoved tells of a shard that could not come or go.
func (ns *Namespace) unmoved(what string, err error) {
	if ns.ctx.Err() == nil {
		ns.node.log.Warn(what, logNamespace(ns), logError(err))
	}
}

// forget ends what drives a set that was left, and what is known of it.
func (ns *Namespace) forget(set *node.Set) {
	all := slices.Clone(ns.shards())
	at := slices.IndexFunc(all, func(sh *shard) bool { return sh.set == set })
	sh := all[at]
	all = slices.Delete(all, at, at+1)
	ns.held.Store(&all)
	sh.end()
	if err := sh.verified.Remove(); err != nil {
		ns.unmoved("when a shard that was left was last proved equal is still noted", err)
	}
}
