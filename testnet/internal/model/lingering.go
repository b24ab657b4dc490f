package model

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
)

// Undecided is an entry of the kept log of a shard that a node has handed over, and goes on
// to hold until a person has restored or forgotten each entry.
type Undecided struct {
	Shard int
	Kept  dbadapter.Kept
	node  *Node
}

// Undecided are those entries, by shard and number.
func (n *Node) Undecided() (all []*Undecided) {
	if n.process == nil || n.process.ns == nil {
		return nil
	}
	for _, set := range n.process.ns.Lingering() {
		if sh := n.process.of(set); sh != nil {
			for _, k := range sh.kept() {
				all = append(all, &Undecided{int(set.Shard()), k, n})
			}
		}
	}
	return all
}

// Forget takes the entry out of the log, and reports whether that was done: the node may
// have dropped the shard, or have been stopped.
func (u *Undecided) Forget() bool {
	p := u.node.process
	if p == nil || p.ns == nil {
		return false
	}
	i := slices.IndexFunc(p.shards, func(sh *shard) bool { return int(sh.set.Shard()) == u.Shard })
	if i < 0 {
		return false
	}
	err := p.shards[i].store.Forget(context.Background(), u.Kept.Seq)
	p.refused(err)
	return err == nil
}

// Offer is what writes the entry again: its shard's hosts take it, as the node is none. What
// becomes of that is to be told by the rest of the offer, and IsSo says of what error that
// the key holds already what would be written.
func (u *Undecided) Offer() Offer {
	return Offer{Drafts: []node.Draft{node.Restored(&u.Kept)}, Level: quorum.One}
}

// IsSo: see Offer.
func (u *Undecided) IsSo(err error) bool { return node.IsSo(&u.Kept, err) }
