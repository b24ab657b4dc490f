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
func (ns *Namespace) Why(ctx context.Context, key []byte, peers ...ID) (all []status.Why, err error) {
	err = ns.within(ctx, fmt.Sprintf("why %q in", clip(key)), func(ctx context.Context) error {
		if ns.core.Bodied() {
			if err := ns.hosts.CheckKey(key); err != nil {
				return err
			}
		}
		sh, err := ns.atHost(ns.shardOf(key))
		if err != nil {
			return ns.orRemoved(err)
		}
		found, err := ns.inquiry().Why(ctx, sh.set, key, nodeIDs(peers))
		if err != nil {
			return err
		}
		for i := range found {
			found[i].Verified = sh.verified.With(found[i].Peer).At
		}
		all = found
		return nil
	})
	return all, err
}

// nodeIDs are ids as the decisions have them.
func nodeIDs(ids []ID) []node.ID {
	out := make([]node.ID, len(ids))
	for i, id := range ids {
		out[i] = node.ID(id)
	}
	return out
}
