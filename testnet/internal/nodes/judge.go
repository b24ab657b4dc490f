package nodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/testnet/internal/check"
)

// check judges the history and what the nodes hold.
func (c *convergence) check(ctx context.Context) error {
	n := c.net
	finals := make([]check.Final, n.Len())
	for i := range finals {
		finals[i] = check.Final{Node: i, Down: true}
	}
	for reach, group := range n.groups() {
		for _, i := range group {
			space := n.Namespace(i)
			audit := space.Audit(ctx)
			if audit != nil && !errors.Is(audit, peer.ErrCorrupt) {
				return fmt.Errorf("node %d: %w", i, audit)
			}
			records, err := dump(ctx, space)
			if err != nil {
				return fmt.Errorf("node %d: %w", i, err)
			}
			info := space.Info()
			kept := check.State{Digest: info.Digest, Records: uint64(info.Records)}
			finals[i] = check.Final{Node: i, Reach: reach, Dump: records, Kept: kept, Recomputed: kept, Audit: audit}
		}
	}
	n.recorder.tell(func(h *check.History) {
		h.Measured("bytes of live heap", heap(), n.config.MaxHeap)
		c.Violations = h.Check(finals)
	})
	c.hint()
	return nil
}

// hint lists what kept the nodes from becoming equal.
func (c *convergence) hint() {
	n := c.net
	say := func(format string, args ...any) { c.Hints = append(c.Hints, fmt.Sprintf(format, args...)) }
	if c.Late {
		equal, err := n.equal()
		if err == nil && equal {
			say("time ran out before a round of syncs moved nothing: allow more, or find the code that writes meanwhile")
		} else {
			say("time ran out before the nodes were equal: allow more, or find what holds them up")
		}
	}
	for way, err := range c.failed {
		say("%s", err)
		if errors.Is(err, peer.ErrDenied) {
			say("node %d and node %d must be members of the namespace in each other's lists (Join, SetRole)", way[0], way[1])
		}
	}
	if groups := n.groups(); len(groups) > 1 {
		say("the net is in parts, %v: Heal joins them", groups)
	}
	for i := range n.places {
		space := n.Namespace(i)
		if space == nil {
			say("node %d is down, or has dropped the namespace: Start it, or leave it out on purpose", i)
			continue
		}
		for at, r := range space.Rejected() {
			if at == maxNamed {
				break
			}
			say("node %d has refused %q at version %s: %s", i, r.Key, r.Version, r.Reason)
		}
	}
}

// maxNamed is how many refused records of a node a hint names.
const maxNamed = 5
