package node

import (
	"bytes"
	"cmp"
	"sync/atomic"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// An empty node is sent everything, by key. How far that has gone is kept in the
// namespace's state. After a break the next sync, with any peer, goes on behind
// that key. It proves nothing; the sync that follows the end does.

// reach is how much has come since the state was saved last.
type reach struct{ bytes atomic.Int64 }

// reached notes how far this node has been sent everything: durably, now and then.
func (set *Set) reached(key []byte, size int64) error {
	if set.reach.bytes.Add(size) < set.ns.node.bulk().Note {
		return nil
	}
	return set.setFilledTo(key)
}

// setFilledTo makes durable behind which key the next sync goes on; nil ends that.
func (set *Set) setFilledTo(key []byte) error {
	set.reach.bytes.Store(0)
	if bytes.Equal(*set.filledTo(set.ns.state.Load()), key) {
		return nil
	}
	return set.ns.update(func(s *State) error {
		*set.filledTo(s) = bytes.Clone(key)
		return nil
	})
}

// Bulk is from when on a sync is a large one. A zero field takes its default.
type Bulk struct {
	// PartsFrom is from how many differences on a sync goes in parts, and PartSize how
	// many a part has, about. Defaults: those of package reconcile.
	PartsFrom, PartSize int64
	// Turn is from how many records on a conversation needs the turn of its peer.
	// Default: 256, so that fewer may come from several peers.
	Turn int
	// Note is how many bytes an empty node is sent between two durable notes of how far
	// that has come. Default: 512 KiB, one batch: ten breaks of a transfer of 100 MB then
	// cost a few percent.
	Note int64
}

// bulk is the node's, with its defaults.
func (n *Node) bulk() Bulk {
	b := n.Bulk
	b.PartsFrom = cmp.Or(b.PartsFrom, reconcile.PartsFrom)
	b.PartSize = cmp.Or(b.PartSize, reconcile.PartSize)
	b.Turn = cmp.Or(b.Turn, turnFrom)
	b.Note = cmp.Or(b.Note, noteEvery)
	return b
}

// filled reports whether this node has been sent everything, or what lay behind the
// key that it had reached. A node that holds it all the same is filled, too.
func (c *Conversation) filled(r *reconcile.Report) bool {
	switch {
	case c.ask.Control || c.ask.DryRun || !c.ask.whole() || !c.gets():
		return false
	case r.Behind:
		return c.behind != nil // and not the peer's key
	}
	return r.Verified || r.Method == wire.MethodAll
}
