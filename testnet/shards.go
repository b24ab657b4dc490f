package testnet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/model"
	"github.com/syncd-io/syncd/testnet/internal/plan"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// A namespace that is cut into shards: what is asked of it, and what is so in the end.

func (r *runner) cut() bool { return r.plan.Shards > 0 }

// offer writes at any node.
func (r *runner) offer(e *plan.Event) {
	d := node.Draft{Record: dbadapter.Record{Key: []byte(e.Key), Deleted: e.Verb == plan.Del}}
	if !d.Record.Deleted {
		d.Record.Value = r.plan.Value(e, 0)
	}
	o := model.Offer{Drafts: []node.Draft{d}}
	o.Level, _ = quorum.ParseLevel(strings.Replace(e.Ack, "majority", "quorum", 1)) // the plan was checked
	op := r.history.Intend(e.Node, e.Key, d.Record.Deleted, d.Record.Value)
	o.Made = func(v []dbadapter.Version) { r.history.Made(op, v[0]) }
	o.Held = func(v []dbadapter.Version, hosts []int) {
		r.result.Routed++
		r.history.AcknowledgeAt(op, v[0], hosts)
	}
	o.Failed = func(_ error, written bool) {
		if !written {
			r.history.Refuse(op)
		}
	}
	r.cluster.Node(e.Node).Offer(o)
}

// read reads a key at any node; found is told what comes of it, if anything does.
func (r *runner) read(node int, key string, found func(*model.Found)) {
	read := r.history.Reading(node, key)
	r.cluster.Node(node).Read(key, shards.GetOptions{}, func(f *model.Found) {
		found(f)
		if f.Err == nil {
			r.result.Routed++
			r.wasRead(read, f)
		}
	})
}

// wasRead judges what a read has found.
func (r *runner) wasRead(read *check.Read, f *model.Found) {
	if f.Nowhere {
		r.result.Nowhere++
		return
	}
	r.history.WasRead(read, f.Record, true, nil)
}

// Holds implements model.Watcher.
func (r *runner) Holds(node, shard int) { r.history.Holds(node, shard) }

// Left implements model.Watcher.
func (r *runner) Left(node, shard int, records []dbadapter.Record) {
	r.history.Left(node, shard, r.cluster.Node(node).Hosts(shard), records)
}

// settling reports whether the nodes are settled, and has some keys read meanwhile: members
// that came or went make shards move long after the last event. What was kept of shards that
// have moved, a person decides upon.
func (r *runner) settling() bool {
	if r.cut() {
		r.decide()
		keys := r.plannedKeys()
		for i := range r.cluster.Nodes() {
			for n := range min(4, len(keys)) {
				r.read(i, keys[r.world.Draw(sim.ForRead, uint64(i), uint64(r.world.Now()), uint64(n))%uint64(len(keys))], func(*model.Found) {})
			}
		}
	}
	return r.settled()
}

// forceLayout has an admin force the layout, as a person does who is told that a majority of a
// shard's hosts is gone for good: removals and restored copies of a plan heed no majorities.
func (r *runner) forceLayout() (did bool) {
	for _, group := range r.reach() {
		i := slices.IndexFunc(group, func(i int) bool { return r.cut() && r.administers(r.cluster.Node(i), i) })
		if i < 0 {
			continue
		}
		over := false
		r.cluster.Node(group[i]).Force(func(shards []int, err error) { over, did = true, did || err == nil && len(shards) > 0 })
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
	for s := range r.plan.Rule().Shards {
		hosts := first.Hosts(s)
		slices.Sort(hosts)
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
			if h, one := sums[s][i], sums[s][holders[0]]; h.Digest != one.Digest || h.Count != one.Count {
				return fmt.Sprintf("shard %d: node %d holds other records than node %d", s, i, holders[0])
			}
			if !sums[s][i].Settled {
				return fmt.Sprintf("shard %d: node %d is not settled", s, i)
			}
		}
	}
	return ""
}

// shardFinals are what a node holds in the end, for each shard, and its list.
func (r *runner) shardFinals(node, group int, members []int) (finals []check.Final, err error) {
	n := r.cluster.Node(node)
	whole := check.Final{
		Node: node, Reach: group * (r.plan.Shards + 1), Outside: !n.Member(), Roster: r.roster(n), Shard: -1, Members: members,
	}
	finals = append(finals, whole)
	all, err := n.Holdings(finalCells)
	for _, h := range all {
		f := whole
		f.Reach, f.Shard, f.Dump, f.Log = whole.Reach+1+h.Shard, h.Shard, h.Records, h.Kept
		f.Stated, f.Stuck, f.Now = r.stated(node), r.stuck(node), r.due()
		f.Kept = check.State{Digest: h.Digest, Records: h.Count, Cells: h.Cells}
		f.Recomputed = r.recomputed(h.Keys, h.Records, len(h.Cells))
		finals = append(finals, f)
	}
	return finals, err
}

// shardsRestored compares what a node has taken up from its disk with its records.
func (r *runner) shardsRestored(i int, n *model.Node) {
	all, err := n.Holdings(finalCells)
	if err != nil {
		r.violate(check.KeptState, i, "after the last power cut: read its cells: %v", err)
	}
	for _, h := range all {
		want := r.recomputed(h.Keys, h.Records, len(h.Cells))
		if h.Digest != want.Digest || h.Count != want.Records || !slices.Equal(h.Cells, want.Cells) {
			r.violate(check.KeptState, i, "after the last power cut it keeps another state than that of its %d records of shard %d", want.Records, h.Shard)
		}
	}
}

// lastReads reads each key at each node, when all hosts are equal.
func (r *runner) lastReads() error {
	keys := append(r.plannedKeys(), "never-written")
	for _, group := range r.reach() {
		if !r.cluster.Node(group[0]).Member() || r.replicas(group) != "" {
			continue
		}
		held := map[string]*dbadapter.Record{}
		for _, i := range group {
			records := r.cluster.Node(i).Records()
			for n := range records {
				held[string(records[n].Key)] = &records[n]
			}
		}
		open := 0
		for _, key := range keys {
			// What a host took that is out of reach the others cannot know.
			reach := !slices.ContainsFunc(r.cluster.Node(group[0]).Hosts(r.cluster.Home(key)), func(i int) bool { return !slices.Contains(group, i) })
			for _, i := range group {
				if !reach || r.unsettled(group, key) {
					continue
				}
				read := r.history.Reading(i, key)
				open++
				r.cluster.Node(i).Read(key, shards.GetOptions{}, func(f *model.Found) {
					open--
					r.result.Routed++
					r.wasRead(read, f)
					r.history.Last(read, f.Record, true, f.Err, held[key])
				})
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

// unsettled reports whether no host of a key is settled: the one host of a shard finds
// nothing to be equal with.
func (r *runner) unsettled(group []int, key string) bool {
	shard := r.cluster.Home(key)
	return !slices.ContainsFunc(group, func(i int) bool {
		all, err := r.cluster.Node(i).Holdings(0)
		return err == nil && slices.ContainsFunc(all, func(h model.Holding) bool { return h.Shard == shard && h.Settled })
	})
}

// whole reports whether a sync moves all that differs of a set.
func whole(e *model.Ended) bool {
	return e.Ask.Moves() && len(e.Ask.Prefix) == 0 && e.Ask.Direction == 0
}

// recomputed is recompute under a shard's keys.
func (r *runner) recomputed(keys reconcile.Keys, dump []dbadapter.Record, cells int) check.State {
	return stateOf(keys, dump, cells)
}
