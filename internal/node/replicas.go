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
	// Held are the shards that this node holds, and Whole those among them of which it has
	// all that it must have.
	Held, Whole int
	// Fetching are those that it is a host of, and does not hold, or is not whole of yet;
	// Dropping those that it holds until a majority of their new hosts has them.
	Fetching, Dropping int
	// Moving are the shards of the namespace whose old hosts and new ones differ.
	Moving int
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
			r.Whole++
		case host:
			r.Fetching++
		}
		if known && !host {
			r.Dropping++
		}
	}
	r.Held = len(held)
	if placed.layout == nil {
		return r, nil
	}
	r.Epoch = placed.stated.Epoch
	for s := range placement.Shard(ns.rule.Shards) {
		replicas := 0
		row := placed.layout.Row(s)
		if !held[s] && row.IsHost(ns.node.ID) {
			r.Fetching++
		}
		if !row.AtRest() {
			r.Moving++
		}
		for _, id := range row.New {
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
