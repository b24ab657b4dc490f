package model

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// pushable makes the process look for what to push, as soon as what it does is done: the
// namespace's locks are held.
func (p *process) pushable(set *node.Set) {
	if sh := p.of(set); sh != nil && !sh.woken {
		sh.woken = true
		p.after(0, sh.push)
	}
}

// push sends what the set has to push, and begins the syncs that pushes bring about.
func (sh *shard) push() {
	sh.woken = false
	sh.pushing.stop()
	p := sh.process
	if p.ns == nil || !p.node.cluster.Push || p.of(sh.set) != sh {
		return
	}
	audience, _ := sh.set.Audience()
	if wait := sh.set.Pushes().Step(audience, carrier{sh, audience}); wait > 0 {
		sh.pushing = p.after(wait, sh.push)
	}
}

// carrier is the network of a shard's pushes.
type carrier struct {
	shard    *shard
	audience map[node.ID]bool // that the mesh reaches
}

func (c carrier) Lines() *push.Lines { return c.shard.lines() }

func (c carrier) Send(m *push.Push, to []node.ID, whole bool) {
	c.shard.say(to, m.Direct(), true)
	if !whole {
		c.shard.say(slices.Sorted(maps.Keys(c.audience)), m.Bytes(), false)
	}
}

func (c carrier) Sync(with, _ node.ID, done func(by node.ID, err error)) {
	p := c.shard.process
	p.sync(c.shard, p.node.cluster.byID[with].number, syncing.Ask{}, func(_ reconcile.Report, err error) { done(with, err) })
}

// alike is what another process drives of the same set; nil: it does not hold it.
func (sh *shard) alike(q *process) *shard {
	if i := slices.IndexFunc(q.shards, func(o *shard) bool { return o.set.Shard() == sh.set.Shard() }); i >= 0 {
		return q.shards[i]
	}
	return nil
}

// lines are the node's lines to the members that are up and have it on their list. A few
// are missing at each time, which are being opened, or which no node has opened.
func (sh *shard) lines() *push.Lines {
	p := sh.process
	l := &push.Lines{Taking: map[node.ID][]node.ID{}}
	for _, other := range p.node.cluster.nodes {
		if q := other.process; q != nil && sh.alike(q) == nil {
			continue
		}
		switch state := p.line(other); {
		case state == lineOpen:
			l.Taking[other.id] = nil
			for _, third := range p.node.cluster.nodes {
				if other.process.line(third) == lineOpen {
					l.Taking[other.id] = append(l.Taking[other.id], third.id)
				}
			}
		case state == lineOpening:
			l.Opening = append(l.Opening, other.id)
		}
	}
	return l
}

// What can be known of a line.
const (
	noLine = iota
	lineOpening
	lineOpen
)

// line is what is known of the line to another node, which stays for a while.
func (p *process) line(to *Node) int {
	const stays, missing, opening = 5 * time.Second, 1, 2 // missing and opening are of 32
	q := to.process
	if q == nil || q == p || q.ns == nil || !q.ns.Admits(p.node.id) {
		return noLine
	}
	switch p.node.world.Draw(sim.ForLine, uint64(p.node.number), uint64(to.number), uint64(p.node.world.Now()/stays)) % 32 {
	case missing:
		return noLine
	case opening:
		return lineOpening
	}
	return lineOpen
}

// say sends a push to other nodes.
func (sh *shard) say(to []node.ID, m []byte, directly bool) {
	p := sh.process
	c := p.node.cluster
	c.pushed++
	message := c.pushed
	p.node.world.Note("push", p.node.number, len(m), nil)
	for _, id := range to {
		other := c.byID[id]
		if other == p.node {
			continue
		}
		c.Net.Say(p.node.number, other.number, message, func() {
			if q := other.process; q != nil {
				q.now(func() {
					if there := sh.alike(q); there != nil {
						there.take(p.node.id, m, directly)
					}
				})
			}
		})
	}
}

// take takes a push of another node.
func (sh *shard) take(from node.ID, m []byte, directly bool) {
	p := sh.process
	if p.ns == nil {
		return
	}
	a, verdict, err := sh.set.Arrived(from, m, directly)
	if verdict == push.Taken {
		err = sh.set.CommitArrivals(context.Background(), []*node.Arrival{a})
	}
	p.refused(err)
}
