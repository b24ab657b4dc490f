package peer

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/singleflight"

	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/machine"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// shard is what this node drives of one of a namespace's sets of records, of which
// internal/node decides. A namespace that is not cut into shards has one.
type shard struct {
	ns  *Namespace
	set *node.Set

	ctx    context.Context // over when the shard closes
	cancel context.CancelFunc

	feed *changes.Feed // of those that watch
	// carrying are syncs that waits for a version have begun: one with a peer at a time, since many waits
	// need no more.
	carrying singleflight.Group
	// pushable holds a token when there may be something to push.
	pushable chan struct{}
	// verified is when syncs have proved the records equal to others'.
	verified *folder.Proofs
}

// openShard begins to drive a set.
func (ns *Namespace) openShard(set *node.Set) *shard {
	sh := &shard{ns: ns, set: set, pushable: make(chan struct{}, 1)}
	sh.ctx, sh.cancel = context.WithCancel(ns.ctx)
	sh.feed = changes.NewFeed(sh.ctx, set.Watched(), func() (leave func(), err error) { return ns.gate.leave, ns.enter("watch") })
	sh.openVerified()
	ns.node.shards.Store(set, sh)
	return sh
}

// end ends what runs in the shard, and does not wait for it.
func (sh *shard) end() {
	sh.cancel()
	sh.ns.node.shards.Delete(sh.set)
}

// close ends the shard, and makes durable what is known of it.
func (sh *shard) close() {
	sh.end()
	if err := sh.verified.Close(); err != nil {
		sh.ns.node.log.Warn("when syncs have proved the sets equal could not be noted for the next start", logNamespace(sh.ns), logError(err))
	}
}

// shards are those that are open now, by number.
func (ns *Namespace) shards() []*shard {
	if all := ns.held.Load(); all != nil {
		return *all
	}
	return nil
}

// with are those that a member holds, too, as far as is known.
func (ns *Namespace) with(id ID) (all []*shard) {
	for _, sh := range ns.shards() {
		if sh.set.With(node.ID(id)) {
			all = append(all, sh)
		}
	}
	return all
}

// life is over when a shard closes; nil: when the namespace does.
func (ns *Namespace) life(sh *shard) context.Context {
	if sh == nil {
		return ns.ctx
	}
	return sh.ctx
}

// shardOf is the shard that a key belongs to; ErrNotFound: this node does not hold it.
func (ns *Namespace) shardOf(key []byte) (*shard, error) {
	if ns.core.Rule() == nil {
		return ns.shards()[0], nil
	}
	return ns.numbered(ns.core.Home(key))
}

// numbered is the shard of that number; ErrNotFound: this node does not hold it.
func (ns *Namespace) numbered(number placement.Shard) (*shard, error) {
	for _, sh := range ns.shards() {
		if sh.set.Shard() == number {
			return sh, nil
		}
	}
	return nil, fmt.Errorf("%w: this node does not hold shard %d: go to a host of it, which locate names", ErrNotFound, number)
}

// shard is that of a set; nil where it is being opened, or is closed.
func (n *Node) shard(set *node.Set) *shard {
	if sh, ok := n.shards.Load(set); ok {
		return sh.(*shard)
	}
	return nil
}

// pushable wakes what sends in a shard. The namespace's locks are held.
func (n *Node) pushable(set *node.Set) {
	if sh := n.shard(set); sh != nil {
		machine.Wake(sh.pushable)
	}
}

// committed wakes what reads for those that watch a shard, after each commit to it.
func (n *Node) committed(set *node.Set) {
	if sh := n.shard(set); sh != nil {
		sh.feed.Committed()
	}
}

// atHost says of a shard that this node does not hold that the call is for its hosts.
func (ns *Namespace) atHost(sh *shard, err error) (*shard, error) {
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: this node is no host of the key's shard, and holds nothing to compare: ask at a host of it, which syncd locate names", ErrInvalid)
	}
	return sh, err
}
