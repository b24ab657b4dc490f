package model

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
)

// Sync makes the node begin a sync with another, as an application asks for it. While
// the other is busy, the node tries again. done may be nil.
func (n *Node) Sync(remote int, a node.Ask, done func(error)) {
	p := n.process
	if done == nil {
		done = func(error) {}
	}
	if p == nil || remote == n.number {
		done(ErrDown)
		return
	}
	p.now(func() {
		if p.ns == nil {
			done(errNoNamespace)
			return
		}
		if p.cut() {
			p.syncAll(remote, a, done)
			return
		}
		p.sync(p.shard, remote, p.set.Course(n.cluster.nodes[remote].id, a), done)
	})
}

// sync holds the conversations of a sync, as many at once as there are.
func (p *process) sync(sh *shard, remote int, course *node.Course, done func(error)) {
	p.follow(sh, remote, course, func(_ reconcile.Report, err error) { done(err) })
}

// syncThen begins a sync of everything, both ways.
func (p *process) syncThen(remote int, done func(reconcile.Report, error)) {
	p.follow(p.shard, remote, p.set.Course(p.node.cluster.nodes[remote].id, node.Ask{}), done)
}

func (p *process) follow(sh *shard, remote int, course *node.Course, done func(reconcile.Report, error)) {
	if err := p.ns.MayCall(p.node.cluster.nodes[remote].id); err != nil {
		p.node.cluster.Watch.Refused(p.node.number, err)
		done(reconcile.Report{}, err)
		return
	}
	held, over := 0, false
	var more func()
	more = func() {
		for a, ok := course.Next(); ok; a, ok = course.Next() {
			held++
			p.hold(sh, remote, a, func(report reconcile.Report, err error) {
				held--
				course.Ended(a, report, err)
				p.hears()
				more()
			})
		}
		if held == 0 && !over {
			over = true
			done(course.Result())
		}
	}
	more()
}

// hold holds a conversation with a node, which may be busy first.
func (p *process) hold(sh *shard, remote int, a node.Ask, done func(reconcile.Report, error)) {
	begun := p.node.world.Now()
	var retry node.BusyRetry
	var once func()
	once = func() {
		p.dial(sh, remote, a, func(report reconcile.Report, err error) {
			if wait, again := retry.Again(p.core, p.node.world.Now()-begun, err); again {
				p.after(wait, once)
				return
			}
			done(report, err)
		})
	}
	once()
}

// background syncs with the members, until the process ends. The schedule decides
// with which and when.
func (p *process) background() {
	p.rounds.stop()
	if p.node.cluster.Every <= 0 {
		return
	}
	var wait func()
	wait = func() {
		p.rounds = p.after(p.core.Schedule.Pause(), func() {
			p.refused(p.core.Tend(context.Background()))
			p.move()
			p.refused(p.core.KeepSummaries(context.Background(), p.node.world.Now()))
			p.round()
			wait()
		})
	}
	wait()
}

// round begins a sync with each member, if there are background syncs.
func (p *process) round() {
	if p.node.cluster.Every > 0 {
		p.core.Schedule.Begin(p.node.knows)
		p.turns()
	}
}

// turns begins the syncs that the schedule has a place for.
func (p *process) turns() {
	n := p.node
	for n.process == p {
		t, ok := p.core.Schedule.Next()
		if !ok {
			return
		}
		p.turn(t, func() {
			p.core.Schedule.Done(t)
			p.turns()
		})
	}
}

// rest does what a process does last when it ends in order.
func (p *process) rest() {
	if p.ns != nil {
		p.refused(p.ns.Rest(context.Background()))
	}
}

// refused tells of work in the background that failed.
func (p *process) refused(err error) {
	if err != nil {
		p.node.cluster.Watch.Refused(p.node.number, err)
	}
}

// time is the driver's virtual time, which no fault of the node's clock moves.
func (p *process) time() time.Time { return Epoch.Add(p.node.world.Now()) }

// knows reports whether the node has an address of another. Up to fewNodes nodes know all
// others. So do those of a namespace that is cut into shards, as any of them may be a host.
// More nodes know those at distances of powers of two.
func (n *Node) knows(id node.ID) bool {
	all := len(n.cluster.nodes)
	if all <= fewNodes || n.cluster.Rule != nil {
		return true
	}
	ahead := (n.cluster.byID[id].number - n.number + all) % all
	return ahead&(ahead-1) == 0
}
