package peer

import (
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// How a read at the hosts of a shard is driven.

// reading is one read. Package route decides it; mu of the node's routing is held while it does.
type reading struct {
	ns  *Namespace
	get *route.Get
	// read asks one host. It calls part when a part of the answer has come.
	read func(ctx context.Context, id ID, part func()) (route.Answer, error)
	// heard has what requests that run beside the driver have come to.
	heard chan func(now time.Duration)
}

// readAt drives a read at the hosts of a shard, of a record or of a page; times are those of
// such reads. A deadline that the options do not have is set here. read calls part when a part of its
// answer has come.
func (ns *Namespace) readAt(ctx context.Context, remote *node.Remote, o route.GetOptions, times *route.Times, read func(ctx context.Context, id ID, part func()) (route.Answer, error)) (route.Found, error) {
	n := ns.node
	candidates := remote.Candidates(func(id node.ID) bool { return n.connected(ID(id)) })
	ctx, cut := context.WithCancel(ctx)
	defer cut() // requests whose answers are awaited no longer
	r := &n.routing
	r.mu.Lock()
	defer r.mu.Unlock() // but while it waits
	if o.Deadline == 0 {
		o.Deadline = n.deadline(ctx)
	}
	g := &reading{ns: ns, get: route.NewGet(times, candidates, o, n.elapsed()), read: read, heard: make(chan func(time.Duration))}
	step := g.get.Next(n.elapsed())
	if step.Do != route.Ask {
		return g.drive(ctx, step)
	}
	next := g.get.Next(n.elapsed())
	if next.Do != route.Wait {
		g.ask(ctx, ID(step.Peer))
		return g.drive(ctx, next)
	}
	return g.alone(ctx, cut, ID(step.Peer), next.Until)
}

// alone asks the first host in the caller's goroutine: most reads take one request, and each
// goroutine that is woken for it would cost as much as the answer's way. What is to be done
// after until, if the host has not answered by then, runs beside it, and takes the read over.
func (g *reading) alone(ctx context.Context, cut context.CancelFunc, id ID, until time.Duration) (route.Found, error) {
	n := g.ns.node
	r := &n.routing
	type result struct {
		found route.Found
		err   error
	}
	over := make(chan result, 1)
	late := time.AfterFunc(until-n.elapsed(), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		found, err := g.drive(ctx, g.get.Next(n.elapsed()))
		over <- result{found, err}
		cut() // the caller's own request, if it is not that which was awaited
	})
	r.mu.Unlock()
	note := g.asked(ctx, id)
	if !late.Stop() {
		tell(ctx, g.heard, note)
		last := <-over
		r.mu.Lock()
		return last.found, last.err
	}
	r.mu.Lock()
	if ctx.Err() != nil { // which says nothing of the host
		return g.ended(ctx)
	}
	note(n.elapsed())
	return g.drive(ctx, g.get.Next(n.elapsed()))
}

// drive does what is to be done, until the read is over.
func (g *reading) drive(ctx context.Context, step route.Step) (route.Found, error) {
	n := g.ns.node
	for {
		switch step.Do {
		case route.Over:
			return g.get.Result(n.elapsed())
		case route.Ask:
			g.ask(ctx, ID(step.Peer))
		case route.Wait:
			if !n.routing.wait(ctx, g.heard, n, step.Until) {
				return g.ended(ctx)
			}
		}
		step = g.get.Next(n.elapsed())
	}
}

// ended is what was found of a read whose context is over.
func (g *reading) ended(ctx context.Context) (route.Found, error) {
	found, _ := g.get.Result(g.ns.node.elapsed())
	return found, context.Cause(ctx)
}

// ask asks a host beside the driver.
func (g *reading) ask(ctx context.Context, id ID) {
	g.ns.request(func() { tell(ctx, g.heard, g.asked(ctx, id)) })
}

// asked asks a host, and says what the decider is to be told of it.
func (g *reading) asked(ctx context.Context, id ID) (note func(now time.Duration)) {
	peer := node.ID(id)
	answer, err := g.read(ctx, id, func() {
		g.ns.node.routing.noting(func() { g.get.Delivers(peer, g.ns.node.elapsed()) })
	})
	return func(now time.Duration) {
		if err != nil {
			g.get.Failed(peer, err, errors.Is(err, ErrBusy), now)
		} else {
			g.get.Answered(peer, answer, now)
		}
	}
}

// wait waits for the end of a request, or until a time, without holding mu; false: the
// context is over.
func (r *routing) wait(ctx context.Context, heard <-chan func(time.Duration), n *Node, until time.Duration) bool {
	r.mu.Unlock()
	defer r.mu.Lock()
	timer := time.NewTimer(until - n.elapsed())
	defer timer.Stop()
	select {
	case note := <-heard:
		r.noting(func() { note(n.elapsed()) })
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// noting tells a decider something while mu is held.
func (r *routing) noting(note func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	note()
}

// tell hands over what a request has come to, unless it is awaited no longer.
func tell(ctx context.Context, heard chan<- func(time.Duration), note func(now time.Duration)) {
	select {
	case heard <- note:
	case <-ctx.Done():
	}
}
