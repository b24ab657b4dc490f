package testnet

import (
	"errors"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// watches reports whether the plan has watches.
func (r *runner) watches() bool {
	return slices.ContainsFunc(r.plan.Events, func(e plan.Event) bool { return e.Verb == plan.Watch })
}

// Unwatched implements model.Watcher.
func (r *runner) Unwatched(node int, program string, err error, log dbadapter.LogID, reaches func(uint64) bool) {
	if !errors.Is(err, changes.ErrCursorExpired) {
		r.violate(check.Watch, node, "its watch %q has failed: %v", program, err)
		return
	}
	r.history.CursorExpired(node, program, log, func(after uint64) bool {
		return (!r.cut() || r.healed > 0 && r.world.Now() > r.healed+lastWords) && reaches(after)
	})
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
