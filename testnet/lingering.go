package testnet

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/testnet/internal/model"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// entry names an entry of the kept log of a shard that a node holds for such entries alone.
type entry struct {
	node, shard int
	seq         uint64
}

// decide has a person do what a node's log asks for while it holds shards for what was kept
// in them alone: restore or forget each entry, by a draw. A restore that fails is tried again.
func (r *runner) decide() {
	for i, n := range r.cluster.Nodes() {
		for _, u := range n.Undecided() {
			at := entry{i, u.Shard, u.Kept.Seq}
			switch {
			case r.deciding[at]:
			case r.world.Draw(sim.ForDecision, uint64(i), uint64(u.Shard), u.Kept.Seq)&1 == 0:
				r.forget(i, u)
			default:
				r.restoreKept(at, n, u)
			}
		}
	}
}

// forget takes an entry out of a node's log.
func (r *runner) forget(node int, u *model.Undecided) {
	if u.Forget() {
		r.history.Forgot(node, &u.Kept.Record)
	}
}

// restoreKept writes an entry again, and then takes it out of the log.
func (r *runner) restoreKept(at entry, n *model.Node, u *model.Undecided) {
	r.deciding[at] = true
	o := u.Offer()
	d := &o.Drafts[0].Record
	ask := r.history.Asks(at.node, string(d.Key), false)
	op := r.history.Intend(at.node, string(d.Key), d.Deleted, d.Value)
	o.Made = func(v []dbadapter.Version) { r.history.Made(op, v[0]) }
	o.Held = func(v []dbadapter.Version, hosts []int) {
		delete(r.deciding, at)
		r.history.Wrote(ask, op, v[0], hosts)
		r.forget(at.node, u)
	}
	o.Failed = func(err error, written bool) {
		delete(r.deciding, at)
		if !written {
			r.history.Refuse(op)
		}
		if u.IsSo(err) {
			r.forget(at.node, u)
		}
	}
	n.Offer(o)
}
