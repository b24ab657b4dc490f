package node

import (
	"context"
	"errors"
	"slices"

	"github.com/syncd-io/syncd/internal/gc"
)

// Tend does what has become due in the namespaces by itself, one after the other.
func (n *Node) Tend(ctx context.Context) error {
	var failed error
	for _, ns := range n.namespaces() {
		_, err := ns.Tend(ctx)
		failed = errors.Join(failed, err)
	}
	return failed
}

// Tend does what has become due in the namespace. A driver calls it with each round
// of the schedule. It may read all records.
func (ns *Namespace) Tend(ctx context.Context) (gc.Swept, error) {
	for _, set := range ns.Sets() {
		set.Live.Rest()
	}
	failed := errors.Join(ns.renounce(ctx), ns.Expire(ctx), ns.dropFormer(ctx))
	_, _, err := ns.tendLayout(ctx)
	_, told := ns.tellShards(ctx, 0)
	failed = errors.Join(failed, err, told)
	if ns.rule != nil && len(ns.Sets()) == 0 { // it lacks nothing
		failed = errors.Join(failed, ns.Return(ctx))
	}
	var all gc.Swept
	for _, set := range ns.Sets() {
		swept, err := set.tend(ctx)
		all, failed = all.Plus(swept), errors.Join(failed, err)
	}
	return all, failed
}

// namespaces are the open ones by id, so that what is done to all of them is a
// function of its input.
func (n *Node) namespaces() []*Namespace {
	n.mu.RLock()
	defer n.mu.RUnlock()
	list := make([]*Namespace, 0, len(n.byID))
	for _, ns := range n.byID {
		list = append(list, ns)
	}
	slices.SortFunc(list, func(a, b *Namespace) int { return slices.Compare(a.id[:], b.id[:]) })
	return list
}
