package testnettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/check"
)

// convergence is what converge has found.
type convergence struct {
	net        *Net
	failed     map[[2]int]error  // the last error of a link
	late       bool              // the context ended before the nodes were equal and idle
	violations []check.Violation // the broken promises
	hints      []string          // what stood in the way, and what to do next
}

// converge makes the nodes that reach one another equal: it syncs them until
// nothing moves, or waits if they sync by themselves. When they are equal, or the
// context ends, it checks all commits so far and all records that the nodes hold.
func (n *Net) converge(ctx context.Context) (*convergence, error) {
	c := &convergence{net: n, failed: map[[2]int]error{}}
	settle := c.drive
	if n.config.interval > 0 {
		settle = c.await
	}
	if err := settle(ctx); err != nil {
		return c, err
	}
	// The check takes its own time: the context bounds how long the nodes had.
	return c, c.check(context.WithoutCancel(ctx))
}

// sync makes node a's records and node b's equal; a begins.
func (n *Net) sync(ctx context.Context, a, b int) (reconcile.Report, error) {
	from, to := n.space(a), n.space(b)
	if from == nil || to == nil {
		return reconcile.Report{}, fmt.Errorf("sync node %d with node %d: one of them is down, or has dropped the namespace", a, b)
	}
	report, err := from.Sync(ctx, n.places[b].id, peer.SyncOptions{})
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

// ways are enough links to carry every record to every node: each node with the last
// that it reaches of those before it in its group.
func (n *Net) ways() (ways [][2]int) {
	for _, group := range n.groups() {
		for at, j := range group {
			for _, i := range slices.Backward(group[:at]) {
				if n.links.passable(j, i) {
					ways = append(ways, [2]int{j, i})
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
			c.late = true
			return nil
		case hopeless, moved == 0 && len(c.failed) == 0:
			return nil
		}
		if len(c.failed) > 0 {
			pause(ctx, retry) // a failed link, or a busy node
		}
	}
}

// round syncs all ways once. again says that all nodes were equal before. It is
// hopeless if every failed sync will fail again.
func (c *convergence) round(ctx context.Context, again bool) (moved int, hopeless bool) {
	clear(c.failed)
	hopeless = true
	for _, way := range c.net.ways() {
		report, err := c.net.sync(ctx, way[0], way[1])
		moved += report.Applied + report.Sent
		switch {
		case errors.Is(err, peer.ErrRejected): // what was declined shows when the records are compared
		case err != nil:
			c.failed[way] = err
			hopeless = hopeless && errors.Is(err, peer.ErrDenied)
			continue
		}
		if again {
			c.net.recorder.tell(func(h *check.History) {
				h.Synced(&check.Sync{Node: way[0], Peer: way[1], Again: true, Report: report})
			})
		}
	}
	return moved, hopeless && len(c.failed) > 0 && moved == 0
}

// await waits until background syncs have made all groups equal.
func (c *convergence) await(ctx context.Context) error {
	err := until(ctx, c.net.equal)
	switch {
	case err == nil:
		c.round(ctx, true) // and a further sync must move nothing
		clear(c.failed)    // they sync by themselves: one that is put off is no hint
	case ctx.Err() != nil:
		c.late = true
	default:
		return err
	}
	return nil
}

// equal reports whether the nodes of each group have the same digest.
func (n *Net) equal() (bool, error) {
	for _, group := range n.groups() {
		var digests []dbadapter.Digest
		for _, i := range group {
			space := n.space(i)
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

// check judges the history and what the nodes hold.
func (c *convergence) check(ctx context.Context) error {
	n := c.net
	finals := make([]check.Final, n.Len())
	for i := range finals {
		finals[i] = check.Final{Node: i, Down: true}
	}
	for reach, group := range n.groups() {
		for _, i := range group {
			space := n.space(i)
			audit := space.Audit(ctx)
			if audit != nil && !errors.Is(audit, peer.ErrCorrupt) {
				return fmt.Errorf("node %d: %w", i, audit)
			}
			var records []dbadapter.Record
			for r, err := range space.Scan(ctx, nil, peer.WithTombstones()) {
				if err != nil {
					return fmt.Errorf("node %d: %w", i, err)
				}
				records = append(records, r)
			}
			info := space.Info()
			kept := check.State{Digest: info.Digest, Records: uint64(info.Records)}
			finals[i] = check.Final{Node: i, Reach: reach, Dump: records, Kept: kept, Recomputed: kept, Audit: audit}
		}
	}
	n.recorder.tell(func(h *check.History) { c.violations = h.Check(finals) })
	c.hint()
	return nil
}

// hint lists what kept the nodes from becoming equal.
func (c *convergence) hint() {
	n := c.net
	say := func(format string, args ...any) { c.hints = append(c.hints, fmt.Sprintf(format, args...)) }
	if c.late {
		say("time ran out before the nodes were equal and syncs moved nothing: allow more, or find what holds them up, or the code that writes meanwhile")
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
		space := n.space(i)
		if space == nil {
			say("node %d is down, or has dropped the namespace: Start it, or leave it out on purpose", i)
			continue
		}
		rejected := space.Rejected()
		for _, r := range rejected[:min(len(rejected), maxNamed)] {
			say("node %d has refused %q at version %s: %s", i, r.Key, r.Version, r.Reason)
		}
	}
}

// maxNamed is how many refused records of a node a hint names.
const maxNamed = 5

// explain lists the violations and hints.
func (c *convergence) explain() string {
	text := fmt.Sprintf("the nodes have not converged, or have broken a promise (%d findings):", len(c.violations))
	for _, v := range c.violations {
		text += "\n\t" + v.String()
	}
	for _, h := range c.hints {
		text += "\n  hint: " + h
	}
	return text + "\n  next: the last log lines of each node follow at the end of the test; where one record is concerned, Namespace(i).Get and Rejected tell more"
}
