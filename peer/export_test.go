package peer

import (
	"context"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/node"
)

// The libp2p protocols of a node.
const (
	SyncProtocol = syncProtocol
	JoinProtocol = joinProtocol
	AskProtocol  = askProtocol
)

// Force stores records past all checks, as a hostile or broken node would.
func (ns *Namespace) Force(ctx context.Context, records ...dbadapter.Record) error {
	var writes []dbadapter.Write
	for _, r := range records {
		hashed, err := dbadapter.Hash(ns.shards()[0].set.Keys.Hasher, r)
		if err != nil {
			return err
		}
		writes = append(writes, dbadapter.Write{Record: hashed})
	}
	_, err := ns.shards()[0].set.Store.Apply(ctx, writes)
	return err
}

// Latest is the greatest clock that the namespace holds.
func (ns *Namespace) Latest() dbadapter.Timestamp { return ns.shards()[0].set.Store.Latest() }

// Writer is the id that the node's versions carry.
func (n *Node) Writer() dbadapter.WriterID {
	w, err := node.ID(n.self.id).Writer()
	if err != nil {
		panic(err) // the id of a node that is open
	}
	return w
}

// Key is the node's identity.
func (n *Node) Key() crypto.PrivKey { return n.self.key }

// Network is that of the node's host.
func (n *Node) Network() network.Network { return n.host.Network() }

// Disconnect closes the connections to a peer.
func (n *Node) Disconnect(id ID) error { return n.host.Network().ClosePeer(id) }

// PutAside sets records aside, as a node does when all are past them.
func PutAside(ns *Namespace, keys ...string) error {
	snap, err := ns.shards()[0].set.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	var writes []dbadapter.Write
	for _, key := range keys {
		r, err := snap.Get([]byte(key))
		if err != nil {
			return err
		}
		hashed, err := dbadapter.Hash(ns.shards()[0].set.Keys.Hasher, r)
		if err != nil {
			return err
		}
		writes = append(writes, dbadapter.Write{Record: hashed, Action: dbadapter.SetAside})
	}
	_, err = ns.shards()[0].set.Store.Apply(context.Background(), writes)
	return err
}

// Spoil makes what the node keeps of the namespace's records wrong: its live sketch, or
// the sum of a range.
func Spoil(ns *Namespace, sketch bool) {
	_, _, seq := ns.shards()[0].set.Live.State()
	c := dbadapter.Change{Seq: seq, Index: 5 << 30}
	if c.Delta = (dbadapter.Digest{1, 2}); sketch {
		c.New, c.Delta = dbadapter.Checksum(rateless.Seal(5<<30, 77)), dbadapter.Digest{}
	}
	ns.shards()[0].set.Live.Observe([]dbadapter.Change{c})
}

// AuditIfDue audits as the node does in the background, and reports whether it was due.
func AuditIfDue(ns *Namespace) bool {
	if !ns.core.AuditDue() {
		return false
	}
	ns.auditSlowly()
	return true
}

// Questions is how many questions to a peer are under way.
func Questions(n *Node, id ID) (count int) {
	for _, c := range n.host.Network().ConnsToPeer(id) {
		for _, s := range c.GetStreams() {
			if s.Protocol() == askProtocol {
				count++
			}
		}
	}
	return count
}
