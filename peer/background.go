package peer

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
)

// background syncs every shard with each of the members, until the node closes. The
// schedule decides which peer is next, and when. A round begins at once where others are
// to hear of shards that this node takes, or of a layout.
func (n *Node) background() {
	defer n.gate.leave()
	if n.gate.enter() {
		go n.collectBodies()
	}
	var running sync.WaitGroup
	defer running.Wait()
	schedule := n.core.Schedule
	var begin func()
	begin = func() {
		for t, ok := schedule.Next(); ok; t, ok = schedule.Next() {
			running.Go(func() {
				n.turn(t)
				schedule.Done(t)
				if n.ctx.Err() == nil {
					begin() // another turn has waited for the place
				}
			})
		}
	}
	for timer := time.NewTimer(schedule.Pause()); ; {
		select {
		case <-n.ctx.Done():
			timer.Stop()
			return
		case <-n.hurried:
		case <-timer.C:
			timer.Reset(schedule.Pause())
			for _, ns := range n.Namespaces() {
				running.Go(ns.tend)
			}
		}
		schedule.Begin(func(id node.ID) bool { return n.host.Known(ID(id)) })
		begin()
	}
}

// collectBodies collects large values that nothing names, by placement writer, until the node closes.
func (n *Node) collectBodies() {
	defer n.gate.leave()
	var running sync.WaitGroup
	defer running.Wait()
	for pause := bodies.FirstRound; n.pause(pause); pause = bodies.Round / 4 {
		for _, ns := range n.Namespaces() {
			if ns.core.Bodied() {
				running.Go(ns.collectBodies)
			}
		}
	}
}

// collectBodies is one round, unless the last one is still under way, or has ended less than bodies.Round ago.
func (ns *Namespace) collectBodies() {
	if !ns.collecting.TryLock() {
		return
	}
	defer ns.collecting.Unlock()
	if ns.node.elapsed() < ns.collectAt || !ns.gate.enter() {
		return
	}
	defer ns.gate.leave()
	defer func() { ns.collectAt = ns.node.elapsed() + bodies.Round }()
	if gone, err := ns.hosts.CollectBodies(ns.ctx); err != nil && ns.ctx.Err() == nil {
		ns.node.log.Warn("large values that nothing names could not be looked for", logNamespace(ns), logError(err))
	} else if gone > 0 {
		ns.node.log.Info("large values that nothing names were deleted", logNamespace(ns), "values", gone)
	}
}

// turn syncs with one peer.
func (n *Node) turn(t node.Turn) {
	remote := ID(t.Remote)
	for _, set := range t.Sets {
		sh := n.shard(set)
		if sh == nil || !n.core.Schedule.Due(set, t.Remote, time.Now()) {
			continue
		}
		_, err := sh.sync(n.ctx, remote, SyncOptions{})
		if n.ctx.Err() != nil {
			return
		}
		n.core.Schedule.Note(set, t.Remote, time.Now(), n.host.Connected(remote), err)
	}
	for _, control := range t.Control {
		ns := n.namespaceByID(control.ID())
		if ns == nil || !n.core.Schedule.DueControl(control, t.Remote, time.Now()) {
			continue
		}
		_, err := ns.sync(n.ctx, nil, remote, SyncOptions{})
		if n.ctx.Err() != nil {
			return
		}
		n.core.Schedule.NoteControl(control, t.Remote, time.Now(), n.host.Connected(remote), err)
	}
}

// pause waits, and reports whether the node is still open.
func (n *Node) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.ctx.Done():
		return false
	}
}
