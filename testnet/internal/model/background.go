package model

import (
	"errors"
	"slices"
	"time"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// Sync has the node begin a sync with another, as an application asks for it:
// while the other is busy it is tried again. done may be nil.
func (n *Node) Sync(remote int, a Ask, done func(error)) {
	p := n.process
	if done == nil {
		done = func(error) {}
	}
	if p == nil || remote == n.id {
		done(ErrDown)
		return
	}
	p.now(func() { p.sync(remote, a, done) })
}

func (p *process) sync(remote int, a Ask, done func(error)) {
	n := p.node
	begun := n.world.Now()
	pause := 50 * time.Millisecond
	var once func()
	once = func() {
		p.dial(remote, a, func(err error) {
			if !errors.Is(err, reconcile.ErrBusy) || n.world.Now()-begun > busyPatience {
				done(err)
				return
			}
			wait := n.world.Between(pause/2, pause*3/2, sim.ForBusy, uint64(n.id), uint64(remote), n.dials)
			pause = pause * 3 / 2
			p.after(wait, once)
		})
	}
	once()
}

// lane is the background syncs with one peer: one at a time, and with rests
// after those that failed.
type lane struct {
	running bool
	rest    time.Duration // the next one; 0 after a success
	until   time.Duration
	failed  uint64
}

// background syncs with each peer, until the process ends.
func (p *process) background() {
	n := p.node
	p.rounds.stop()
	every := n.cluster.Every
	if every <= 0 {
		return
	}
	rounds := uint64(0)
	var wait func()
	wait = func() {
		rounds++
		d := n.world.Between(every/2, every*3/2, sim.ForInterval, uint64(n.id), n.starts<<1|uint64(boolean(n.cluster.settling)), rounds)
		p.rounds = p.after(d, func() {
			p.round()
			wait()
		})
	}
	wait()
}

// round begins a sync with each peer that is due.
func (p *process) round() {
	n := p.node
	for _, remote := range n.partners() {
		l := p.lanes[remote]
		if l == nil {
			l = &lane{}
			p.lanes[remote] = l
		}
		if l.running || n.world.Now() < l.until || p.own() >= sessions/2 {
			continue
		}
		l.running = true
		p.sync(remote, Ask{}, func(err error) {
			l.running = false
			p.note(l, remote, err)
		})
		if n.process != p {
			return
		}
	}
}

// note lets a lane rest after a failure: up to eight intervals.
func (p *process) note(l *lane, remote int, err error) {
	if err == nil {
		l.rest, l.until = 0, 0
		return
	}
	n, every := p.node, p.node.cluster.Every
	l.rest = min(max(every, l.rest*3/2), 8*every)
	l.failed++
	l.until = n.world.Now() + n.world.Between(l.rest/2, l.rest*3/2, sim.ForRest, uint64(n.id), uint64(remote), n.starts<<32|l.failed)
}

func (p *process) own() (n int) {
	for _, x := range p.sessions {
		n += 1 - x.side
	}
	return n
}

// partners are the nodes that this one syncs with on its own.
func (n *Node) partners() (ids []int) {
	all := len(n.cluster.nodes)
	if all <= fewNodes {
		for i := range all {
			if i != n.id {
				ids = append(ids, i)
			}
		}
		return ids
	}
	for d := 1; d < all; d *= 2 {
		ids = append(ids, (n.id+d)%all)
	}
	return ids
}

// Settle makes all nodes sync about every so often from now on, whatever
// failed before.
func (c *Cluster) Settle(every time.Duration) {
	c.Every, c.settling = every, true
	for _, n := range c.nodes {
		if n.process != nil {
			clear(n.process.lanes)
			n.process.background()
		}
	}
}

// Rest ends all background syncs that are not under way.
func (c *Cluster) Rest() {
	for _, n := range c.nodes {
		if n.process != nil {
			n.process.rounds.stop()
		}
	}
}

// aside is what a peer has refused lately.
type aside struct {
	*reconcile.Declined
	until time.Duration
}

func (p *process) aside(remote int) *reconcile.Declined {
	now := p.node.world.Now()
	a := p.asides[remote]
	if a == nil || now >= a.until {
		a = &aside{new(reconcile.Declined), now + asideLife}
		p.asides[remote] = a
	}
	return a.Declined
}

// remembered is how many syncs are looked back at for how many cells the next
// one should open with.
const remembered = 4

func (p *process) opening(remote int) int {
	last := p.openings[remote]
	if last == nil {
		return 0
	}
	return slices.Max(last)
}

func (p *process) opened(remote, differences int) {
	last := p.openings[remote]
	if last == nil {
		last = slices.Repeat([]int{reconcile.FirstCells}, remembered)
	}
	p.openings[remote] = append(last[1:remembered:remembered], reconcile.CellsToOpen(differences))
}
