package peer

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
)

// Why asks members what they hold under a key, and explains how that compares with what
// this node holds. It asks the peers named, or all other members, all at the same time.
// A peer that does not answer has StandingUnknown, and a cause.
func (ns *Namespace) Why(ctx context.Context, key []byte, peers ...ID) ([]status.Why, error) {
	if err := ns.enter("ask why"); err != nil {
		return nil, err
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	fail := func(err error) ([]status.Why, error) {
		return nil, fmt.Errorf("why %q in %s: %w", clip(key), ns.Name(), err)
	}
	if ns.core.Bodied() {
		if err := ns.hosts.CheckKey(key); err != nil {
			return fail(err)
		}
	}
	sh, err := ns.atHost(ns.shardOf(key))
	if err != nil {
		return fail(ns.orRemoved(err))
	}
	named := make([]node.ID, len(peers))
	for i, id := range peers {
		named[i] = node.ID(id)
	}
	all, err := ns.inquiry().Why(ctx, sh.set, key, named)
	if err != nil {
		return fail(err)
	}
	for i := range all {
		all[i].Verified = sh.verified.With(all[i].Peer).At
	}
	return all, nil
}
