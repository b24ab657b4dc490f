package peer

import (
	"context"

	"github.com/syncd-io/syncd/internal/mesh"
	"github.com/syncd-io/syncd/internal/node"
)

// openPushes begins to push and to hear, for all namespaces.
func (n *Node) openPushes(_ context.Context, cfg *Config) error {
	if !cfg.pushes() {
		return nil
	}
	pushes, err := mesh.Open(n.ctx, mesh.Config{
		Host: n.host, Members: netMembers{n}, Book: n.book, Bandwidth: n.bandwidth, Log: n.log, Now: n.now, Interval: n.core.Interval,
		DialTimeout: n.limits.DialTimeout, IdleTimeout: n.limits.IdleTimeout, Connections: n.limits.Connections,
		Enter:  func() (leave func(), ok bool) { return n.gate.leave, n.gate.enter() },
		Pushed: n.metrics.Pushed,
	})
	if err != nil {
		return err
	}
	n.onClose(pushes.Close)
	n.mu.Lock()
	n.pushes = pushes
	n.mu.Unlock()
	for _, ns := range n.Namespaces() {
		for _, sh := range ns.shards() {
			sh.push(pushes)
		}
	}
	return nil
}

// mesh carries the pushes; nil: there are none.
func (n *Node) mesh() *mesh.Mesh {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.pushes
}

// push begins to push and to hear in a shard, until it closes. It does nothing without a mesh.
func (sh *shard) push(pushes *mesh.Mesh) {
	ns := sh.ns
	if pushes == nil || !ns.gate.enter() {
		return
	}
	go func() {
		defer ns.gate.leave()
		if err := pushes.Follow(sh.ctx, mesh.Source{
			Set: sh.set, Pushable: sh.pushable,
			Enter: func() (leave func(), ok bool) { return ns.gate.leave, ns.gate.enter() },
			Sync: func(ctx context.Context, with ID) error {
				_, err := sh.sync(ctx, with, SyncOptions{})
				return err
			},
		}); err != nil {
			ns.node.log.Error("nothing is pushed, and syncs at intervals go on", logNamespace(ns), logError(err))
		}
	}()
}

// peerPushes reports whether a peer pushes and hears.
func (n *Node) peerPushes(id node.ID) bool { return mesh.Pushes(n.host, ID(id)) }

// queued is how many bytes of the set's pushes wait, here and in the lines of members.
func (n *Node) queued(set *node.Set) int {
	bytes := set.Pushes().Queued()
	if pushes := n.mesh(); pushes != nil {
		bytes += pushes.Queued(set)
	}
	return bytes
}
