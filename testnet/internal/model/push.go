package model

import (
	"context"

	"github.com/syncd-io/syncd/internal/node"
)

// pushable makes the process look for what to push, as soon as what it does is done: the
// namespace's locks are held.
func (p *process) pushable(*node.Namespace) {
	if !p.woken {
		p.woken = true
		p.after(0, p.push)
	}
}

// push sends what the namespace has to push to each other member, and begins the syncs
// that pushes bring about.
func (p *process) push() {
	p.woken = false
	p.pushing.stop()
	c := p.node.cluster
	if p.ns == nil || !c.Push {
		return
	}
	push, wait := p.ns.NextPush()
	for ; push != nil; push, wait = p.ns.NextPush() {
		p.tell(push)
	}
	with, _, pause := p.ns.NextSync()
	if with != "" {
		p.sync(c.byID[with].number, p.ns.Course(with, node.Ask{}), func(err error) { p.ns.HastenedDone(with, err) })
	}
	if wait == 0 || pause > 0 && pause < wait {
		wait = pause
	}
	if wait > 0 {
		p.pushing = p.after(wait, p.push)
	}
}

// tell sends a push to each member that the node knows of, in the order of their numbers.
func (p *process) tell(push []byte) {
	c := p.node.cluster
	c.pushed++
	message := c.pushed
	p.node.world.Note("push", p.node.number, len(push), nil)
	for _, to := range c.nodes {
		if to == p.node || !p.ns.Members().Has(to.id, node.RoleRead) {
			continue
		}
		c.Net.Say(p.node.number, to.number, message, func() {
			if q := to.process; q != nil {
				q.now(func() { q.hear(p.node.id, push) })
			}
		})
	}
}

// hear takes a push of another node.
func (p *process) hear(from node.ID, push []byte) {
	if p.ns == nil {
		return
	}
	a, verdict, err := p.ns.Arrived(from, push)
	if verdict == node.PushTaken {
		err = p.ns.CommitArrivals(context.Background(), []*node.Arrival{a})
	}
	p.refused(err)
}
