package node

import (
	"bytes"
	"sync/atomic"

	"github.com/syncd-io/syncd/internal/syncing"
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

// bulk is the node's, with its defaults.
func (n *Node) bulk() syncing.Bulk { return n.Bulk.WithDefaults() }
