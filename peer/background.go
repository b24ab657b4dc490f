package peer

import (
	"context"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
)

// background syncs every shard with each of the members, until the node closes. The
// schedule decides which peer is next, and when. A round begins at once where others are
// to hear of shards that this node takes, or of a layout.
func (n *Node) background() {
	r := &rounds{node: n}
	defer r.running.Wait()
	schedule := n.core.Schedule
	for timer := time.NewTimer(schedule.Pause(n.core.Seeking())); ; {
		select {
		case <-n.ctx.Done():
			timer.Stop()
			return
		case <-n.hurried:
		case <-timer.C:
			timer.Reset(schedule.Pause(n.core.Seeking()))
			for _, ns := range n.Namespaces() {
				r.running.Go(ns.tend)
			}
		}
		schedule.Round(n.ctx, r, n.partners())
	}
}

// partners are the peers that there is a way to reach.
func (n *Node) partners() []syncing.Turn[*node.Part] {
	return n.core.Partners(func(id node.ID) bool { return n.host.Known(ID(id)) })
}

// rounds holds the syncs of the schedule.
type rounds struct {
	node    *Node
	running sync.WaitGroup
}

func (r *rounds) Sync(ctx context.Context, part *node.Part, remote node.ID) (reached bool, err error) {
	var sh *shard
	if set := part.Set(); set != nil {
		if sh = r.node.shard(set); sh == nil {
			return false, syncing.ErrSkipped // it is being dropped
		}
	}
	ns := r.node.namespaceByID(part.Namespace().ID())
	if ns == nil {
		return false, syncing.ErrSkipped
	}
	_, err = ns.sync(ctx, sh, ID(remote), SyncOptions{})
	return r.node.host.Connected(ID(remote)), err
}

func (r *rounds) Now() time.Time { return time.Now() }

func (r *rounds) Go(ctx context.Context, f func(ctx context.Context)) {
	r.running.Go(func() { f(ctx) })
}

// collectBodies collects large values that nothing names, by placement writer, until the context ends.
func (ns *Namespace) collectBodies(ctx context.Context) {
	for pause := bodies.FirstRound; machine.Sleep(ctx, pause) == nil; pause = bodies.Round {
		if gone, err := ns.hosts.CollectBodies(ctx); err != nil && ctx.Err() == nil {
			ns.node.log.Warn("large values that nothing names could not be looked for", logNamespace(ns), logError(err))
		} else if gone > 0 {
			ns.node.log.Info("large values that nothing names were deleted", logNamespace(ns), "values", gone)
		}
	}
}

// pause waits, and reports whether the node is still open.
func (n *Node) pause(d time.Duration) bool { return machine.Sleep(n.ctx, d) == nil }

// gate counts the calls inside, and refuses more once it is shut. (A WaitGroup
// alone will not do: it must not grow from zero while a goroutine waits.)
type gate struct {
	mu     sync.Mutex
	inside int
	shut   bool
	empty  chan struct{} // closed when the gate is shut and the last call has left
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter reports whether the gate is open; if so, leave must follow.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.shut && g.inside == 0 {
		close(g.empty)
	}
}

// close shuts the gate, and reports whether this call did. The channel empty
// tells when all have left.
func (g *gate) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.shut = true
	if g.inside == 0 {
		close(g.empty)
	}
	return true
}
