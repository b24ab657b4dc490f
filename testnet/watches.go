package testnet

import (
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/changes"
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

func (r watcher) Told(number int, program string, e *changes.Event, end uint64) {
	r.result.Watched++
	kinds := map[changes.Kind]string{changes.Put: "put", changes.Delete: "delete", changes.Gone: "gone"}
	r.history.Watched(number, program, &check.Event{
		Cursor: string(e.Cursor), At: e.Kind == changes.At, Kind: kinds[e.Kind], Key: string(e.Key), Record: e.Record, Coalesced: e.Coalesced, Read: end,
	})
}

func (r watcher) ToldAll(number int, program string, at changes.Cursor, end uint64) {
	r.history.WatchedAll(number, program, string(at), end)
}

func (r watcher) Expired(node int, program string, log dbadapter.LogID, reaches func(uint64) bool) {
	r.history.CursorExpired(node, program, log, func(after uint64) bool {
		return (!r.cut() || r.healed > 0 && r.world.Now() > r.healed+lastWords) && reaches(after)
	})
}

func (r watcher) Failed(node int, program string, err error) {
	r.violate(check.Watch, node, "its watch %q has failed: %v", program, err)
}

// lastLooks waits until all programs were told all that is held, when all nodes are equal, and
// ends them. What those over shards ask for would go on.
func (r *runner) lastLooks() error {
	behind := func(says func(node int, program, why string)) (any bool) {
		for _, group := range r.reach() {
			if r.cut() && (!r.cluster.Node(group[0]).Member() || r.replicas(group) != "" || !r.complete(group)) {
				continue
			}
			for _, i := range group {
				held, lost := r.cluster.Node(i).Records(), map[string]bool{}
				if r.cut() {
					held = r.recordsOf(group)
				}
				if r.plan.Writer {
					lost = r.lost(held)
				}
				for _, program := range r.cluster.Node(i).Programs() {
					if why := r.history.Behind(i, program, held, lost); why != "" {
						any = true
						says(i, program, why)
					}
				}
			}
		}
		return any
	}
	done, err := r.wait(r.world.Now()+lastWords, lastPace, func() bool { return !behind(func(int, string, string) {}) })
	if !done && err == nil {
		behind(func(node int, program, why string) {
			r.violate(check.Watch, node, "all nodes are equal, and %s later its watch %q has not told everything: %s", lastWords, program, why)
		})
	}
	for _, n := range r.cluster.Nodes() {
		for _, program := range n.Programs() {
			n.Unwatch(program)
		}
	}
	return err
}

// lost are the keys among records whose values no node has.
func (r *runner) lost(records []dbadapter.Record) map[string]bool {
	var all []dbadapter.Record
	for _, n := range r.cluster.Nodes() {
		all = append(all, n.Records()...)
	}
	return check.Bodiless(records, all)
}

// recordsOf are the records of all shards that a group holds.
func (r *runner) recordsOf(group []int) (all []dbadapter.Record) {
	held := map[string]dbadapter.Record{}
	for _, i := range group {
		for _, record := range r.cluster.Node(i).Records() {
			if !r.plan.Writer || !bodies.Reserved(record.Key) {
				held[string(record.Key)] = record
			}
		}
	}
	return slices.Collect(maps.Values(held))
}
