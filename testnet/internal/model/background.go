package model

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
)

// background syncs with the members, until the process ends. The schedule decides
// with which and when.
func (p *process) background() {
	p.rounds.stop()
	if p.node.cluster.Every <= 0 {
		return
	}
	var wait func()
	wait = func() {
		p.rounds = p.after(p.core.Schedule.Pause(p.core.Seeking()), func() {
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
		p.core.Schedule.Round(context.Background(), rounds{p}, p.core.Partners(p.node.knows))
	}
}

// rounds holds the syncs of the schedule.
type rounds struct{ *process }

func (r rounds) Sync(ctx context.Context, part *node.Part, remote node.ID) (reached bool, err error) {
	sh := r.served(part)
	if r.ns == nil || sh == nil {
		return false, syncing.ErrSkipped
	}
	there := r.node.cluster.byID[remote]
	_, err = r.syncIn(ctx, sh, there.number, syncing.Ask{})
	return there.Up(), err
}

// Now is the driver's virtual time, which no fault of the node's clock moves.
func (r rounds) Now() time.Time { return Epoch.Add(r.node.world.Now()) }

func (r rounds) Go(_ context.Context, f func(ctx context.Context)) { r.aside(f) }

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
