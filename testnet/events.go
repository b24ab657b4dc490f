package testnet

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// do carries out one event. A node that does not start, or refuses a request, is
// no error here: the checker judges it.
func (r *runner) do(e *plan.Event) {
	r.world.Note(e.Verb.String(), e.Node, e.Peer, nil)
	n := r.cluster.Node(e.Node)
	switch e.Verb {
	case plan.Get:
		r.get(e)
	case plan.Scan:
		n.Scan(func(records []dbadapter.Record, err error) { r.history.Scanned(e.Node, records, err, nil, false) })
	case plan.Reindex:
		n.Reindex()
	case plan.Put, plan.PutIf, plan.Expiring, plan.Backdate, plan.Touch, plan.Batch, plan.Del:
		r.write(e)
	case plan.Dated, plan.Import:
		if r.cut() {
			r.bring(e)
		} else {
			r.dated(e)
		}
	case plan.Sync, plan.Pull, plan.Push, plan.Diff, plan.SendAll, plan.SyncPrefix:
		n.Sync(e.Peer, askOf(e), nil)
	case plan.Join:
		r.history.Granting(e.Peer, e.Node, cmp.Or(role(e.Key), node.RoleWrite).String())
		n.Join(e.Peer, role(e.Key))
	case plan.Redeem:
		n.Redeem(e.Peer)
	case plan.SetRole, plan.Term:
		if r.cluster.Node(e.Peer).Roster() == nil {
			return // a member that never comes would hold all collection back
		}
		r.history.Excuse()
		r.history.Granting(e.Node, e.Peer, e.Key)
		r.terms = max(r.terms, r.world.Now()+e.For)
		n.SetRole(e.Peer, role(e.Key), e.For)
	case plan.Remove:
		r.history.Excuse()
		n.Remove(e.Peer)
		r.history.Fails(e.Peer, true)
		r.left[e.Peer] = true
	case plan.Lapse:
		r.history.Excuse()
		r.history.Fails(e.Peer, true)
		r.left[e.Peer] = true
		n.Lapse(e.Peer)
	case plan.Replay:
		r.cluster.Replay(e.Node, e.Peer)
	case plan.Why, plan.Wait, plan.WaitAll, plan.WaitKey, plan.Status:
		r.ask(e)
	case plan.Watch:
		n.Watch(e.Key, e.Watching)
	case plan.Unwatch:
		n.Unwatch(e.Key)
	case plan.CrashAnswering:
		n.CrashAnswering()
	case plan.Crash:
		n.Crash()
	case plan.CrashAt:
		n.CrashAt(e.Step)
	case plan.Start:
		_ = n.Start()
	case plan.Freeze:
		n.Freeze(e.For)
	case plan.Skew:
		n.Skew(time.Duration(e.Amount) * time.Millisecond)
	case plan.StopClock:
		n.StopClock(e.For)
	case plan.Restamp:
		// Until its clock says that again, it holds back what it promises.
		r.restamped = max(r.restamped, n.Latest())
		n.Restamp()
	case plan.Cut:
		r.net.Cut(e.Node, e.Peer)
	case plan.Heal:
		r.net.Heal(e.Node, e.Peer)
	case plan.Partition:
		r.partition(e.Groups())
	case plan.HealAll:
		r.net.HealAll()
	case plan.Loss:
		r.net.Lossy(e.Node, e.Peer, float64(e.Amount)/1000)
	case plan.Copy:
		r.history.Copied(e.Node)
		n.Copy()
	case plan.Restore, plan.RestoreBackup:
		r.restore(e.Node, e.Verb == plan.RestoreBackup)
	case plan.Flip:
		n.Flip(uint64(e.Amount))
	case plan.FlipCell:
		n.FlipCell(uint64(e.Amount))
	case plan.FlipSum:
		n.FlipSum(uint64(e.Amount))
	case plan.Phantom:
		n.Phantom(uint64(e.Amount))
	case plan.FalsePeel:
		n.FalsePeel(e.Peer)
	case plan.ShortCheck:
		n.ShortCheck(e.Peer)
	case plan.Full:
		r.fill(e.Node, e.For)
	case plan.Old:
		_ = n.Speak(true)
	case plan.Lie:
		_ = n.Lie()
	case plan.Hide, plan.Invent:
		n.Mislead(e.Key, e.Verb == plan.Invent)
	case plan.New:
		_ = n.Speak(false)
	default:
		panic("nothing is done at " + e.String())
	}
}

// askOf is what a sync asks for.
func askOf(e *plan.Event) (a syncing.Ask) {
	switch e.Verb {
	case plan.Pull:
		a.Direction = wire.Pull
	case plan.Push:
		a.Direction = wire.Push
	case plan.Diff:
		a.DryRun, a.Keys = true, &syncing.KeyList{}
	case plan.SendAll:
		a.Method = wire.MethodAll
	case plan.SyncPrefix:
		a.Prefix = []byte(e.Key)
	}
	return a
}

// role is the role that an event names, or 0.
func role(name string) node.Role {
	if name == "" {
		return 0
	}
	r, err := node.ParseRole(name)
	if err != nil {
		panic(err) // the plan was checked
	}
	return r
}

// write makes the event's request at its node, as an application would.
func (r *runner) write(e *plan.Event) {
	if r.cut() {
		r.offer(e)
		return
	}
	n := r.cluster.Node(e.Node)
	if _, ok := n.Get(e.Key); e.Verb == plan.Touch && !ok {
		return
	}
	drafts, ops := r.drafts(e, quorum.Quorum)
	told := func(i int, version dbadapter.Version, err error) {
		if err == nil {
			r.history.Acknowledge(ops[i], version)
			return
		}
		r.history.Refuse(ops[i])
		if errors.Is(err, dbadapter.ErrConflict) {
			// The model makes and commits versions in one order.
			r.violate(ruleOvertaken, e.Node, "%v", err)
		}
	}
	switch e.Verb {
	case plan.Del:
		n.Delete(drafts[0].Record.Key, told)
	case plan.Backdate:
		n.Backdate(drafts[0].Record, e.For, told)
	default:
		n.Write(drafts, told)
	}
}

// drafts are the writes that an event asks for, noted before they are sent.
func (r *runner) drafts(e *plan.Event, l quorum.Level) (drafts []node.Draft, ops []check.Op) {
	for i, key := range r.keysOf(e) {
		d := node.Draft{Record: dbadapter.Record{Key: []byte(key), Deleted: e.Verb == plan.Del}}
		switch e.Verb {
		case plan.Del:
		case plan.Touch:
			d.Record.Value, _ = r.cluster.Node(e.Node).Get(key)
		default:
			d.Record.Value = r.plan.Value(e, i)
		}
		op := r.intend(e.Node, key, d.Record.Deleted, d.Record.Value, l)
		switch e.Verb {
		case plan.Expiring:
			d.TTL = e.For
			r.history.Expiring(op)
		case plan.PutIf:
			on := r.known[nodeKey{e.Node, key}]
			d.If = &on
			r.history.If(op, on)
		}
		drafts, ops = append(drafts, d), append(ops, op)
	}
	return drafts, ops
}

// dated imports the event's record at its node, as an application would.
func (r *runner) dated(e *plan.Event) {
	n := r.cluster.Node(e.Node)
	item := node.Item{Key: []byte(e.Key), Value: r.plan.Value(e, 0), Time: n.Clock().Truncate(10 * time.Second)}
	op := r.history.Intend(e.Node, e.Key, false, item.Value)
	n.Import(item, func(_ int, version dbadapter.Version, err error) {
		if err == nil && !version.IsZero() {
			r.history.Acknowledge(op, version)
		} else {
			r.history.Refuse(op) // or it lost to the record held
		}
	})
}

// partition cuts the links between groups; a node in no group is alone.
func (r *runner) partition(groups [][]int) {
	group := make([]int, r.plan.Nodes)
	for i := range group {
		group[i] = -1 - i
	}
	for g, nodes := range groups {
		for _, i := range nodes {
			group[i] = g
		}
	}
	for a := range group {
		for b := range group {
			if group[a] != group[b] {
				r.net.Cut(a, b)
			}
		}
	}
}

func (r *runner) restore(node int, byProgram bool) {
	n := r.cluster.Node(node)
	if n.HasCopy() {
		r.replaced[node] = true
		n.Stop()
		r.history.Restored(node)
		r.history.Fails(node, byProgram)
		delete(r.layouts, node)
		_ = n.Restore(byProgram)
	}
}

// forgotten reports whether neither a node nor any other one lists the two as members.
func (r *runner) forgotten(node int) bool {
	own := r.cluster.Node(node)
	for i, n := range r.cluster.Nodes() {
		if i != node && n.Up() && n.Member() && (own.Lists(i) || n.Lists(node)) {
			return false
		}
	}
	return true
}

// fill makes a disk full until the last of the events that did so ends.
func (r *runner) fill(node int, d time.Duration) {
	n := r.cluster.Node(node)
	n.Fill(true)
	r.fills[node]++
	r.world.After(d, func() {
		if r.fills[node]--; r.fills[node] == 0 {
			n.Fill(false)
		}
	})
}

// reach numbers the groups of nodes that can sync with one another after everything is
// healed. A group is the members of one version of the protocol. Alone is each node
// that is not a member any more, has not become one, or forgot by a copy from before
// that there are others, which know it no more.
func (r *runner) reach() (groups [][]int) {
	var alone [][]int
	for _, old := range []bool{false, true} {
		var group []int
		for i, n := range r.cluster.Nodes() {
			switch {
			case !n.Up() || n.Old() != old:
			case n.Member() && !(r.replaced[i] && r.forgotten(i)):
				group = append(group, i)
			default:
				alone = append(alone, []int{i})
			}
		}
		groups = append(groups, group)
	}
	return slices.DeleteFunc(append(groups, alone...), func(g []int) bool { return len(g) == 0 })
}
