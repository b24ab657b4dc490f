package model

import (
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
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
	w, err := ask.NewAwaiting(p.ns, named, o.Count)
	if err != nil {
		return err
	}
	var about *wire.AskKey
	version := o.Version
	if o.Key != "" {
		if about, err = ask.VersionQuestion(p.set, []byte(o.Key), version); err != nil {
			return err
		}
		version = about.Held.Version
	}
	var of []int
	for _, id := range w.Of() {
		of = append(of, n.cluster.byID[id].number)
	}
	o.Begun(of, version, p.records())
	over := w.Done()
	end := func() {
		if !over {
			over = true
			o.Ended(w.Done())
		}
	}
	if over {
		o.Ended(true)
		return nil
	}
	if o.For > 0 {
		p.after(o.For, end)
	}
	for _, id := range w.Of() {
		p.routine(func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			ask.Await(ctx, awaiting{hosts{p}}, p.set, id, about, func(err error) {
				if over || ctx.Err() != nil {
					cancel()
					return
				}
				w.Heard(id, err)
				if err == nil {
					o.Confirmed(n.cluster.byID[id].number)
				}
				if w.Done() {
					end()
				}
			})
		})
	}
	return nil
}

// awaiting is the network of waits, as package ask sees it. Each is a routine; it ends where the cluster rests.
type awaiting struct{ hosts }

func (w awaiting) Ask(ctx context.Context, id node.ID, patience time.Duration, q wire.Question) (*wire.Reply, error) {
	p := w.process
	if p.node.cluster.resting {
		return nil, errResting
	}
	asked, err := p.ask(ctx, p.node.cluster.byID[id].number, patience, q)
	if err != nil {
		return nil, err
	}
	return asked.Reply, nil
}

func (w awaiting) Sync(ctx context.Context, id node.ID, _ bool) (verified bool, err error) {
	p := w.process
	if p.node.cluster.resting {
		return false, errResting
	}
	report, err := p.syncIn(ctx, p.shard, p.node.cluster.byID[id].number, syncing.Ask{})
	return report.Verified, err
}

func (w awaiting) Sleep(ctx context.Context, d time.Duration) error {
	if w.process.node.cluster.resting {
		return errResting
	}
	return w.hosts.Sleep(ctx, d)
}

var errResting = errors.New("waits go no further")
