package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/check"
)

// Outcome is what Converge has found.
type Outcome struct {
	// Violations are the broken promises; empty if all hold.
	Violations []check.Violation
	// Hints say, in addition to violations, what stood in the way and what to do next.
	Hints []string
	// Late says that the context ended before the nodes were equal and idle.
	Late bool
}

// Converge makes the nodes that reach one another equal: it syncs them until
// nothing moves, or waits if they sync by themselves. When they are equal, or the
// context ends, it checks all commits since Open and all records that the nodes
// hold. The caller must not write meanwhile.
func (n *Net) Converge(ctx context.Context) (Outcome, error) {
	run := &convergence{net: n, failed: map[[2]int]error{}}
	var err error
	if n.config.Interval > 0 {
		err = run.await(ctx)
	} else {
		err = run.drive(ctx)
	}
	if err != nil {
		return run.Outcome, err
	}
	// The check takes its own time: the context bounds how long the nodes had.
	return run.Outcome, run.check(context.WithoutCancel(ctx))
}

type convergence struct {
	Outcome
	net    *Net
	failed map[[2]int]error // the last error of a link
}

// Sync makes node a's records and node b's equal; a begins. It tries again as long as the
// link is whole and the peer cannot be reached. Broken connections and older dials fail syncs for a moment after a partition
// or cut has ended.
func (n *Net) Sync(ctx context.Context, a, b int) (reconcile.Report, error) {
	for {
		report, err := n.sync(ctx, a, b)
		passing := errors.Is(err, peer.ErrUnreachable) || errors.Is(err, peer.ErrBusy)
		if !passing || !n.links.passable(a, b) || ctx.Err() != nil {
			return report, err
		}
		pause(ctx, retry)
	}
}

// sync does so once.
func (n *Net) sync(ctx context.Context, a, b int) (reconcile.Report, error) {
	from, to := n.Namespace(a), n.Namespace(b)
	if from == nil || to == nil {
		return reconcile.Report{}, fmt.Errorf("sync node %d with node %d: one of them is down, or has dropped the namespace", a, b)
	}
	report, err := from.Sync(ctx, n.ID(b), peer.SyncOptions{})
	if err != nil {
		return report, fmt.Errorf("sync node %d with node %d: %w", a, b, err)
	}
	return report, nil
}

// retry is the pause after a failed sync.
const retry = 20 * time.Millisecond

// groups are the running nodes, in groups that reach one another, directly or
// through others.
func (n *Net) groups() [][]int {
	seen := make([]bool, n.Len())
	var groups [][]int
	for i, p := range n.places {
		if seen[i] || p.running == nil {
			continue
		}
		seen[i] = true
		group := []int{i}
		for at := 0; at < len(group); at++ {
			for j, q := range n.places {
				if !seen[j] && q.running != nil && n.links.passable(group[at], j) {
					seen[j] = true
					group = append(group, j)
				}
			}
		}
		groups = append(groups, group)
	}
	return groups
}

// ways are enough links to carry every record to every node: each node with the
// first that reached it, and with the one before it. The second kind adds syncs of
// other pairs.
func (n *Net) ways() (ways [][2]int) {
	for _, group := range n.groups() {
		for at, j := range group[1:] {
			earlier := group[:at+1]
			for k, i := range earlier {
				if n.links.passable(j, i) {
					ways = append(ways, [2]int{j, i})
					if last := earlier[len(earlier)-1]; k < len(earlier)-1 && n.links.passable(j, last) {
						ways = append(ways, [2]int{j, last})
					}
					break
				}
			}
		}
	}
	return ways
}

// drive syncs until a whole round moves nothing.
func (c *convergence) drive(ctx context.Context) error {
	for {
		equal, err := c.net.equal()
		if err != nil {
			return err
		}
		moved, hopeless := c.round(ctx, equal)
		switch {
		case ctx.Err() != nil:
			c.Late = true
			return nil
		case hopeless:
			return nil
		case moved == 0 && len(c.failed) == 0:
			return nil
		}
		if len(c.failed) > 0 {
			pause(ctx, retry) // a failed link, or a busy node
		}
	}
}

// round syncs all ways once. It is hopeless if every failed sync will fail again.
func (c *convergence) round(ctx context.Context, again bool) (moved int, hopeless bool) {
	clear(c.failed)
	hopeless = true
	for _, way := range c.net.ways() {
		report, err := c.sync(ctx, way, again)
		moved += report.Applied + report.Sent
		if err != nil {
			c.failed[way] = err
			hopeless = hopeless && errors.Is(err, peer.ErrDenied)
		}
	}
	return moved, hopeless && len(c.failed) > 0 && moved == 0
}

// observable is the most records of a node for which a sync's sets, before and
// after, are recorded: that takes four scans.
const observable = 2000

// sync syncs one way, and records the sets of both sides before and after, or
// that all nodes were equal before.
func (c *convergence) sync(ctx context.Context, way [2]int, again bool) (reconcile.Report, error) {
	n := c.net
	watched := !again
	for _, i := range way {
		watched = watched && n.Namespace(i).Info().Records <= observable
	}
	note := check.Sync{Node: way[0], Peer: way[1], Again: again, Gets: true, Gives: true, Quiet: true}
	dumps := func(into *[2][]dbadapter.Record) error {
		for side, i := range way {
			var err error
			if into[side], err = dump(ctx, n.Namespace(i)); err != nil {
				return err
			}
		}
		return nil
	}
	if watched {
		if err := dumps(&note.Before); err != nil {
			return reconcile.Report{}, err
		}
	}
	report, err := n.sync(ctx, way[0], way[1])
	note.Report = report
	if errors.Is(err, peer.ErrRejected) {
		err = nil // it ran to its end; what was declined shows when the sets are compared
	}
	switch {
	case err != nil:
		return report, err
	case watched:
		if err := dumps(&note.After); err != nil {
			return report, err
		}
		fallthrough
	case again:
		n.recorder.tell(func(h *check.History) { h.Synced(&note) })
	}
	return report, nil
}

// await waits until background syncs have made all groups equal.
func (c *convergence) await(ctx context.Context) error {
	for {
		changed := c.net.recorder.commits.wait()
		equal, err := c.net.equal()
		if err != nil {
			return err
		}
		if equal {
			c.round(ctx, true) // and a further sync must move nothing
			clear(c.failed)    // they sync by themselves: one that is put off is no hint
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			c.Late = true
			return nil
		}
	}
}

// equal reports whether the nodes of each group have the same digest.
func (n *Net) equal() (bool, error) {
	for _, group := range n.groups() {
		var digests []dbadapter.Digest
		for _, i := range group {
			space := n.Namespace(i)
			if space == nil {
				return false, fmt.Errorf("node %d has dropped the namespace: only nodes that have it can converge; Stop the node, or join again", i)
			}
			digests = append(digests, space.Info().Digest)
			if digests[len(digests)-1] != digests[0] {
				return false, nil
			}
		}
	}
	return true, nil
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// dump is all that a namespace holds, by key.
func dump(ctx context.Context, space *peer.Namespace) (all []dbadapter.Record, err error) {
	for r, err := range space.Scan(ctx, nil, peer.WithTombstones()) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}
