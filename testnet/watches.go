package testnet

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/model"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// watcher has the checker judge what watches tell.
type watcher struct{ *runner }

// watches is nil for a plan without watches: then change logs are not told, either.
func (r *runner) watches() model.Watches {
	if !slices.ContainsFunc(r.plan.Events, func(e plan.Event) bool { return e.Verb == plan.Watch }) {
		return nil
	}
	return watcher{r}
}

func (r watcher) Changed(node int, c *model.Changed) {
	r.history.Changed(node, c.Log, &check.Change{Seq: c.Seq, Index: c.Index, Keys: c.Keys, Held: c.Held})
}

func (r watcher) Begun(b *model.Begun) {
	r.history.Watching(&check.Watching{Node: b.Node, Program: b.Program, Prefix: b.Prefix, Cursor: string(b.Cursor), Now: b.Now, Log: b.Log, End: b.End})
}

func (r watcher) Told(number int, program string, e *node.Watched, end uint64) {
	r.result.Watched++
	kinds := map[node.Kind]string{node.PutKind: "put", node.DeleteKind: "delete", node.GoneKind: "gone"}
	r.history.Watched(number, program, &check.Event{
		Cursor: string(e.Cursor), At: e.Kind == node.AtKind, Kind: kinds[e.Kind], Key: string(e.Key), Record: e.Record, Coalesced: e.Coalesced, Read: end,
	})
}

func (r watcher) ToldAll(number int, program string, at node.Cursor, end uint64) {
	r.history.WatchedAll(number, program, string(at), end)
}

func (r watcher) Expired(node int, program string, log dbadapter.LogID, reaches func(uint64) bool) {
	r.history.CursorExpired(node, program, log, reaches)
}

func (r watcher) Failed(node int, program string, err error) {
	r.violate(check.Watch, node, "its watch %q has failed: %v", program, err)
}

// lastLooks waits until all programs were told everything, when all nodes are equal.
func (r *runner) lastLooks() error {
	behind := func() bool {
		return slices.ContainsFunc(r.cluster.Nodes(), func(n *model.Node) bool { return len(n.Behind()) > 0 })
	}
	done, err := r.wait(r.world.Now()+lastWords, lastPace, func() bool { return !behind() })
	if done {
		return nil
	}
	for i, n := range r.cluster.Nodes() {
		for _, program := range n.Behind() {
			r.violate(check.Watch, i, "all nodes are equal, and %s later its watch %q has not told everything", lastWords, program)
		}
	}
	return err
}

// viewed compares what programs were told with what their nodes hold.
func (r *runner) viewed() {
	for i, n := range r.cluster.Nodes() {
		for _, program := range n.Watched() {
			r.history.Viewed(i, program, n.Records())
		}
	}
}
