package model

import (
	"context"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// Sync makes the node begin a sync with another, as an application asks for it. While
// the other is busy, the node tries again. done may be nil.
func (n *Node) Sync(remote int, a syncing.Ask, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	if remote == n.number {
		done(ErrDown)
		return
	}
	n.do(func(p *process) error {
		if p.cut() {
			p.syncAll(remote, a, done)
		} else {
			p.sync(p.shard, remote, a, func(_ reconcile.Report, err error) { done(err) })
		}
		return nil
	}, done)
}

// syncAll syncs the shards that another node is to hold, too, one after the other; where the
// two share none, the list of members.
func (p *process) syncAll(remote int, a syncing.Ask, done func(error)) {
	p.routine(func(ctx context.Context) {
		id := p.node.cluster.nodes[remote].id
		all := slices.DeleteFunc(slices.Clone(p.shards), func(sh *shard) bool { return !sh.set.With(id) })
		_, synced, _, failed := syncing.All(ctx, all, nil, func(sh *shard, _ func(reconcile.Report)) (reconcile.Report, error) {
			return p.syncIn(ctx, sh, remote, a)
		})
		if synced == 0 && ctx.Err() == nil {
			_, failed = p.syncIn(ctx, p.bare(), remote, syncing.Ask{DryRun: a.DryRun})
		}
		if ctx.Err() != nil {
			return
		}
		p.after(0, func() { done(failed) }) // outside of the routine
	})
}

// sync syncs the records that a shard drives, or, where it drives none, the list of members.
func (p *process) sync(sh *shard, remote int, a syncing.Ask, done func(reconcile.Report, error)) {
	p.routine(func(ctx context.Context) {
		report, err := p.syncIn(ctx, sh, remote, a)
		if ctx.Err() == nil {
			p.after(0, func() { done(report, err) }) // outside of the routine
		}
	})
}

// syncIn is sync in a routine.
func (p *process) syncIn(ctx context.Context, sh *shard, remote int, a syncing.Ask) (reconcile.Report, error) {
	id := p.node.cluster.nodes[remote].id
	if err := p.ns.MayCall(id); err != nil {
		p.refused(err)
		return reconcile.Report{}, err
	}
	report, err := sh.part().Plan(id, a).Run(ctx, &call{process: p, shard: sh, remote: remote}, nil)
	if ctx.Err() == nil {
		p.hears()
	}
	return report, err
}

// part is what a shard drives.
func (sh *shard) part() *node.Part {
	if sh.set == nil {
		return &sh.process.ns.Control
	}
	return &sh.set.Part
}

// call is a sync that the process has begun.
type call struct {
	process *process
	shard   *shard
	remote  int
	held    bool   // there was a conversation
	running int    // routines
	wake    func() // when there is none; nil: nothing waits for that
}

func (c *call) Converse(ctx context.Context, a syncing.Ask, _ func(reconcile.Report)) (reconcile.Report, error) {
	if c.held { // what the end of the last one has led to
		c.process.hears()
	}
	c.held = true
	return c.process.converse(ctx, c.shard, c.remote, a)
}

func (c *call) Backoff() syncing.Backoff { return c.process.core.Backoff() }

func (c *call) Elapsed() time.Duration { return c.process.node.world.Now() }

func (c *call) Sleep(ctx context.Context, d time.Duration) error {
	return hosts{c.process}.Sleep(ctx, d)
}

func (c *call) Go(_ context.Context, f func(ctx context.Context)) {
	c.running++
	c.process.aside(func(ctx context.Context) {
		f(ctx)
		if c.running--; c.running == 0 && c.wake != nil {
			c.process.after(0, c.wake)
		}
	})
}

func (c *call) Wait(ctx context.Context) {
	if c.running > 0 {
		_ = routineOf(ctx).await(func(done func()) { c.wake = done }) // ctx tells, too
	}
}
