package testnet

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/model"
	"github.com/syncd-io/syncd/testnet/internal/plan"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// A namespace that is cut into shards: what is asked of it, and what is so in the end.

func (r *runner) cut() bool { return r.plan.Shards > 0 }

// Left implements model.Watcher.
func (r *runner) Left(node, shard int, records []dbadapter.Record) {
	r.goes()
	r.history.Left(node, shard, records)
}

// settling reports whether the nodes have nothing left to bring to one another. Members that
// joined or left make shards move long after the last event: until each move has ended there
// is some load.
func (r *runner) settling() bool {
	if r.cut() {
		r.load(!r.moved())
	}
	return r.settled()
}

// load reads some keys at each node, and writes one.
func (r *runner) load(writes bool) {
	keys := r.plannedKeys()
	levels := []string{plan.One, plan.Quorum, plan.Quorum, plan.All}
	for i := range r.cluster.Nodes() {
		for n := range min(len(levels), len(keys)) {
			e := plan.Event{At: r.world.Now(), Verb: plan.Get, Node: i, Read: levels[n]}
			e.Key = keys[r.world.Draw(sim.ForRead, uint64(i), uint64(r.world.Now()), uint64(n))%uint64(len(keys))]
			r.read(&e, func(*model.Found) {})
			if n == 0 && writes {
				e.Verb, e.Size, e.Read = plan.Put, 1+i, ""
				r.offer(&e)
			}
		}
	}
}

// moved reports whether each move of a shard has ended, as far as the members of each group know.
func (r *runner) moved() bool {
	for _, group := range r.reach() {
		for _, i := range group {
			n, first := r.cluster.Node(i), r.cluster.Node(group[0])
			epoch, table := n.Layout()
			if e, t := first.Layout(); n.Member() && (epoch == 0 || e != epoch || t != table || slices.ContainsFunc(n.Rows(), func(row *quorum.Row) bool { return !row.AtRest() })) {
				return false
			}
		}
	}
	return true
}

// forceLayout has an admin force the layout, as a person does who is told that a majority of a
// shard's hosts is gone for good. Removals and restored copies of a plan heed no majorities.
func (r *runner) forceLayout() (did bool) {
	if !r.cut() {
		return false
	}
	for _, n := range r.admins() {
		over := false
		n.Force(func(shards []int, err error) { over, did = true, did || err == nil && len(shards) > 0 })
		if done, err := r.wait(r.world.Now()+lastWords, lastPace, func() bool { return over }); !done || err != nil {
			return false
		}
	}
	return did
}

// plannedKeys are the keys that the plan writes.
func (r *runner) plannedKeys() []string {
	keys := map[string]bool{}
	for i := range r.plan.Events {
		if e := &r.plan.Events[i]; e.Verb.Writes() {
			keys[e.Key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// shardsEqual reports whether the nodes of each group have one list and one layout, hold what
// that says and are equal in it.
func (r *runner) shardsEqual() bool {
	reach := r.reach()
	for _, group := range reach {
		first := r.cluster.Node(group[0])
		if len(reach) > 1 && r.listsLeavers(group[0]) {
			return false
		}
		if !first.Member() {
			continue
		}
		// Nodes that share no shard sync the list alone: tables of older layouts are to have gone.
		// What a node will still say by itself would differ then.
		if r.replicas(group) != "" || slices.ContainsFunc(group, func(i int) bool {
			return r.cluster.Node(i).Control() != first.Control() || r.cluster.Node(i).ToArrange()
		}) {
			return false
		}
	}
	return true
}

// replicas says what is not so of the shards in a group of members; empty: all is.
func (r *runner) replicas(group []int) string {
	first := r.cluster.Node(group[0])
	epoch, table := first.Layout()
	if epoch == 0 {
		return fmt.Sprintf("node %d knows no layout", group[0])
	}
	members := len(first.Roster().Members())
	sums := map[int]map[int]model.Holding{}
	for _, i := range group {
		n := r.cluster.Node(i)
		if e, t := n.Layout(); n.List() != first.List() || e != epoch || t != table {
			return fmt.Sprintf("node %d has another list or layout than node %d", i, group[0])
		}
		all, err := n.Holdings(0)
		if err != nil {
			return err.Error()
		}
		for _, h := range all {
			if sums[h.Shard] == nil {
				sums[h.Shard] = map[int]model.Holding{}
			}
			sums[h.Shard][i] = h
		}
	}
	for s, row := range first.Rows() {
		if !row.AtRest() {
			return fmt.Sprintf("the move of shard %d has not ended: %s", s, r.row(row, epoch))
		}
		hosts := r.row(row, epoch).New
		holders := slices.Sorted(maps.Keys(sums[s]))
		inReach := slices.DeleteFunc(slices.Clone(hosts), func(i int) bool { return !slices.Contains(group, i) })
		switch {
		case len(hosts) != min(r.plan.Replicas, members) || slices.ContainsFunc(hosts, func(i int) bool { return !first.Lists(i) }):
			return fmt.Sprintf("shard %d has the hosts %v; there are %d members, and %d replicas are wanted", s, hosts, members, r.plan.Replicas)
		case !slices.Equal(holders, inReach):
			return fmt.Sprintf("shard %d is held by the nodes %v; its hosts are %v", s, holders, hosts)
		}
		for _, i := range holders {
			for _, other := range r.cluster.Node(i).SyncsWith(s) {
				if slices.Contains(group, other) && !slices.Contains(holders, other) {
					return fmt.Sprintf("shard %d: node %d has not heard that node %d holds it no longer", s, i, other)
				}
			}
			if h, one := sums[s][i], sums[s][holders[0]]; h.Kept.Digest != one.Kept.Digest || h.Kept.Records != one.Kept.Records {
				return fmt.Sprintf("shard %d: node %d holds other records than node %d", s, i, holders[0])
			}
			if !sums[s][i].Settled {
				return fmt.Sprintf("shard %d: node %d is not whole", s, i)
			}
		}
	}
	return ""
}

// lastReads reads each key at each node, when all hosts are equal.
func (r *runner) lastReads() error {
	keys := append(r.plannedKeys(), "never-written")
	for _, group := range r.reach() {
		if !r.cluster.Node(group[0]).Member() || r.replicas(group) != "" || !r.complete(group) {
			continue
		}
		held := map[string]*dbadapter.Record{}
		for _, record := range r.recordsOf(group) {
			held[string(record.Key)] = &record
		}
		open := 0
		for _, i := range group {
			open++
			r.cluster.Node(i).Scan(func(records []dbadapter.Record, err error) {
				if open--; !errors.Is(err, bodies.ErrLost) {
					r.history.Scanned(i, records, err, held, true)
				}
			})
		}
		for _, key := range keys {
			for _, i := range group {
				for _, level := range []quorum.Level{quorum.One, quorum.Quorum, quorum.All} {
					ask := r.history.Asks(i, key, level != quorum.One)
					open++
					r.cluster.Node(i).Read(key, shards.GetOptions{Level: level}, func(f *model.Found) {
						open--
						r.wasRead(ask, f)
						behind := r.plan.Writer && level == quorum.One && f.Err == nil // a hint may be, for good
						if !behind && !errors.Is(f.Err, bodies.ErrLost) {
							r.history.Last(ask, f.Record, f.Err, held[key])
						}
					})
				}
			}
		}
		done, err := r.wait(r.world.Now()+lastWords, lastPace, func() bool { return open == 0 })
		if !done {
			r.violate(check.Answer, group[0], "%d reads have not ended after %s", open, lastWords)
			return err
		}
	}
	return nil
}

// complete reports whether a group has all hosts: what one took that is out of reach the others cannot know.
func (r *runner) complete(group []int) bool {
	for _, row := range r.cluster.Node(group[0]).Rows() {
		if slices.ContainsFunc(r.row(row, 0).New, func(i int) bool { return !slices.Contains(group, i) }) {
			return false
		}
	}
	return true
}

// whole reports whether a sync moves all that differs of a set.
func whole(e *model.Ended) bool {
	return e.Ask.Moves() && len(e.Ask.Prefix) == 0 && e.Ask.Direction == 0
}
