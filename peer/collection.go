package peer

import (
	"context"
	"log/slog"
	"slices"

	"github.com/syncd-io/syncd/internal/gc"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/peer/status"
)

// Collection says how far the collection is, and what holds it back.
func (ns *Namespace) Collection() status.Collection {
	var c watermark.Collection
	for i, sh := range ns.shards() {
		if one := sh.set.Collection(); i == 0 {
			c = one
		} else {
			c = c.Plus(one)
		}
	}
	out := status.Collection{
		Waiting: c.Waiting, Counted: c.Counted, Oldest: c.Oldest, Mark: c.Mark, Floor: c.Floor, Recovering: c.Recovering, Holding: []status.Holding{},
	}
	now := ns.node.now()
	for _, h := range c.Holding {
		last := h.Synced
		if last.IsZero() {
			last = h.Since
		}
		if last.IsZero() {
			last = ns.node.started
		}
		out.Holding = append(out.Holding, status.Holding{Member: ID(h.Member), Reason: h.Reason, Since: h.Since, Synced: h.Synced, Silent: now.Sub(last) > SilentAfter})
	}
	return out
}

// silent are the members that hold the collection back and were not heard for long.
func (ns *Namespace) silent() []status.Holding {
	return slices.DeleteFunc(ns.Collection().Holding, func(h status.Holding) bool { return !h.Silent })
}

// Collect takes out what all members are past, and tells them what this node holds.
// Daemons do so by themselves; it does not reach further than they would.
func (ns *Namespace) Collect(ctx context.Context) (status.Swept, error) {
	var all gc.Swept
	err := ns.within(ctx, "collect in", func(ctx context.Context) error {
		for _, sh := range ns.shards() {
			swept, err := sh.set.Collect(ctx)
			if all = all.Plus(swept); err != nil {
				return err
			}
		}
		return nil
	})
	return status.Swept(all), err
}

// tend does what has become due in the namespace by itself, unless that is being
// done: it may read all records.
func (ns *Namespace) tend() {
	if !ns.tending.TryLock() {
		return
	}
	defer ns.tending.Unlock()
	ns.tendLocked()
}

// tendLocked is tend; tending is held.
func (ns *Namespace) tendLocked() {
	if ns.enter("tend") != nil {
		return // it is being closed
	}
	defer ns.gate.leave()
	n := ns.node
	ns.announce(n.host.Dialable()) // of no effect, unless a copy of this node has told them its own
	_, err := ns.core.Tend(ns.ctx)
	if err != nil && ns.ctx.Err() == nil {
		n.log.Warn("a namespace could not be tended", logNamespace(ns), logError(err))
	}
	ns.move()
	var swept gc.Swept
	for _, sh := range ns.shards() {
		left := sh.set.Left() // by syncs, too
		swept = swept.Plus(gc.Swept{Collected: left.Collected - sh.left.Collected, Adopted: left.Adopted - sh.left.Adopted, SetAside: left.SetAside - sh.left.SetAside})
		sh.left = left
	}
	if swept != (gc.Swept{}) {
		n.metrics.Collected(ns.Name(), status.Swept(swept))
		n.log.Info("records have left a namespace", logNamespace(ns),
			slog.Int64("collected", swept.Collected), slog.Int64("adopted", swept.Adopted), slog.Int64("set_aside", swept.SetAside))
	}
}
