package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// leaveFor bounds how long a drop tries to reach another member, one after the other.
const leaveFor = 10 * time.Second

// takeLeave sends another member the record that this node holds no shard of a namespace any more, before the
// namespace is dropped with that record. Otherwise the others would go on to ask this node about the shards that
// it has held, and wait for its answer.
func (n *Node) takeLeave(ctx context.Context, name string, force bool) error {
	ns, _ := n.Namespace(name)
	if ns == nil || force || ns.core.Rule() == nil || ns.core.Outside() != nil || ns.core.HandedOver() != nil {
		return nil // the drop says why it is refused
	}
	others := ns.core.Others()
	if len(others) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaveFor)
	defer cancel()
	slices.SortStableFunc(others, func(a, b node.ID) int { // those that can be reached first
		switch connected := n.host.Connected(ID(a)); {
		case connected == n.host.Connected(ID(b)):
			return 0
		case connected:
			return -1
		}
		return 1
	})
	var failed error
	for _, id := range others {
		err := ns.hosts.Net.SyncLists(ctx, id)
		if err == nil || errors.Is(err, ErrRejected) { // one side declines what counts no longer there
			return nil
		}
		if failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err)); ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("%w: no other member has heard that this node holds no shard any more: try again, or force it and have an admin remove this member: %w", ErrUnreachable, failed)
}
