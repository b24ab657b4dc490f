package model

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// WaitFor says what a node waits for, as an application asks it to.
type WaitFor struct {
	// Peers are the members to wait for; without any all others. Count is how many of them
	// are enough; 0: all.
	Peers []int
	Count int
	// Key and Version narrow it to one version, if Key is not empty; the zero version: to
	// the one that the node holds.
	Key     string
	Version dbadapter.Version
	// For is after which time it ends; 0: never.
	For time.Duration
	// Begun is told of the version, and of what the node holds, if the wait begins.
	Begun func(of []int, version dbadapter.Version, held []dbadapter.Record)
	// Confirmed is told of each member as soon as it is known to hold it. Ended is told at
	// the end whether as many do as were asked for.
	Confirmed func(member int)
	Ended     func(done bool)
}

// Wait waits until other nodes hold what this one does. A node that dies meanwhile tells
// no more.
func (n *Node) Wait(o WaitFor) {
	n.joinedDo(func(p *process) error { return p.wait(&o) })
}

func (p *process) wait(o *WaitFor) error {
	n := p.node
	p.flush()
	var named []node.ID
	for _, peer := range o.Peers {
		named = append(named, n.cluster.nodes[peer].id)
	}
	w, err := p.ns.NewAwaiting(named, o.Count)
	if err != nil {
		return err
	}
	var about *wire.AskKey
	version := o.Version
	if o.Key != "" {
		if about, err = p.set.VersionQuestion([]byte(o.Key), version); err != nil {
			return err
		}
		version = about.Held.Version
	}
	var of []int
	for _, id := range w.Of() {
		of = append(of, n.cluster.byID[id].number)
	}
	o.Begun(of, version, p.records())
	one := &waitOf{process: p, o: o, w: w}
	if w.Done() {
		one.end()
		return nil
	}
	if o.For > 0 {
		p.after(o.For, one.end)
	}
	for _, id := range w.Of() {
		x := &errand{Errand: p.set.Errand(id, about), of: one, id: id, member: n.cluster.byID[id].number, begun: n.world.Now()}
		one.cut = append(one.cut, func() { x.cut() })
		x.cut = func() {}
		x.run()
	}
	return nil
}

// waitOf is a wait under way.
type waitOf struct {
	process *process
	o       *WaitFor
	w       *node.Awaiting
	cut     []func()
	over    bool
}

func (w *waitOf) end() {
	if w.over {
		return
	}
	w.over = true
	for _, cut := range w.cut {
		cut()
	}
	w.o.Ended(w.w.Done())
}

// errand is a wait with one member; a sync that it has begun goes on when it is cut.
type errand struct {
	*node.Errand
	of     *waitOf
	id     node.ID
	member int
	begun  time.Duration // of the try
	cut    func()
}

func (x *errand) run() {
	p := x.of.process
	if x.of.over || p.node.cluster.resting {
		return
	}
	switch step := x.Next(); step.Do {
	case node.WaitAsk:
		x.cut = p.question(x.member, step.Patience, step.Question, func(q *Question, err error) {
			var reply *wire.Reply
			if err == nil {
				reply = q.Reply
			}
			x.Answered(reply, err)
			x.run()
		})
	case node.WaitSync:
		p.sync(p.shard, x.member, syncing.Ask{}, func(report reconcile.Report, err error) {
			x.Synced(report.Verified, err)
			x.run()
		})
	case node.WaitPause:
		x.heard(x.Err())
		p.after(max(0, step.Pause-(p.node.world.Now()-x.begun)), func() {
			x.begun = p.node.world.Now()
			x.Paused()
			x.run()
		})
	case node.WaitOver:
		x.heard(nil)
	}
}

// heard notes what has come of a try.
func (x *errand) heard(err error) {
	if x.of.over {
		return
	}
	x.of.w.Heard(x.id, err)
	if err == nil {
		x.of.o.Confirmed(x.member)
	}
	if x.of.w.Done() {
		x.of.end()
	}
}
