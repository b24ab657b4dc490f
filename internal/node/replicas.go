package node

import (
	"github.com/syncd-io/syncd/internal/placement"
)

// Replicas is how the shards of a namespace stand: this node's, and by what the members say
// of themselves, all of them.
type Replicas struct {
	// Epoch is that of the layout that counts here; 0: none is known, and all else that
	// rests on it is 0.
	Epoch uint64
	// Held are the shards that this node holds, and Sure those among them of which it
	// knows what is not there.
	Held, Sure int
	// Coming are those that it is to hold, and does not, or is not sure of yet; Leaving
	// those that it holds until their hosts have them.
	Coming, Leaving int
	// Short are the shards that fewer of their new hosts say to hold than there are to be
	// replicas. A host says so as soon as it has begun to fetch a shard.
	Short int
}

// Replicas says how the shards stand; ErrOneShard.
func (ns *Namespace) Replicas() (r Replicas, err error) {
	if ns.rule == nil {
		return r, ErrOneShard
	}
	placed, heldBy := ns.placed.Load(), *ns.heldBy.Load()
	held := map[placement.Shard]bool{}
	for _, set := range ns.Sets() {
		held[set.shard] = true
		host, known := set.isHost(ns.node.ID)
		switch {
		case set.settled():
			r.Sure++
		case host:
			r.Coming++
		}
		if known && !host {
			r.Leaving++
		}
	}
	r.Held = len(held)
	if placed.layout == nil {
		return r, nil
	}
	r.Epoch = placed.stated.Epoch
	for s := range placement.Shard(ns.rule.Shards) {
		replicas := 0
		if !held[s] && placed.layout.Has(s, ns.node.ID) {
			r.Coming++
		}
		for _, id := range placed.layout.Row(s).New {
			holds := held[s]
			if id != ns.node.ID {
				said, ok := heldBy[id]
				holds = ok && said.has(s) && ns.Admits(id)
			}
			if holds {
				replicas++
			}
		}
		if replicas < ns.rule.Replicas {
			r.Short++
		}
	}
	return r, nil
}
