package peer

import (
	"context"
	"log/slog"
	"slices"

	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/peer/status"
)

// Collection says how far the collection is, and what holds it back.
func (ns *Namespace) Collection() (c status.Collection) {
	for i, sh := range ns.shards() {
		if one := sh.set.Collection(); i == 0 {
			c = one
		} else {
			c = watermark.Both(c, one)
		}
	}
	c.Holding = append([]status.Holding{}, c.Holding...)
	now := ns.node.now()
	for i := range c.Holding {
		h := &c.Holding[i]
		last := h.Synced
		if last.IsZero() {
			last = h.Since
		}
		if last.IsZero() {
			last = ns.node.started
		}
		h.Silent = now.Sub(last) > SilentAfter
	}
	return c
}

// silent are the members that hold the collection back and were not heard for long.
func (ns *Namespace) silent() []status.Holding {
	return slices.DeleteFunc(ns.Collection().Holding, func(h status.Holding) bool { return !h.Silent })
}

// Collect takes out what all members are past, and tells them what this node holds.
// Daemons do so by themselves; it does not reach further than they would.
func (ns *Namespace) Collect(ctx context.Context) (all status.Swept, err error) {
	err = ns.within(ctx, "collect in", func(ctx context.Context) error {
		for _, sh := range ns.shards() {
			swept, err := sh.set.Collect(ctx)
			if all = all.Plus(swept); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
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
	var swept status.Swept
	for _, sh := range ns.shards() {
		swept = swept.Plus(sh.set.Left()) // by syncs, too
	}
	if swept != (status.Swept{}) {
		n.metrics.Collected(ns.Name(), swept)
		n.log.Info("records have left a namespace", logNamespace(ns),
			slog.Int64("collected", swept.Collected), slog.Int64("adopted", swept.Adopted), slog.Int64("set_aside", swept.SetAside))
	}
}
