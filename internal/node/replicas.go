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
	// Short are the shards that fewer of their hosts say to hold than there are to be
	// replicas. A host says so as soon as it has begun to fetch a shard.
	Short int
}

// Replicas says how the shards stand; ErrOneShard.
func (ns *Namespace) Replicas() (r Replicas, err error) {
	if ns.rule == nil {
		return r, ErrOneShard
	}
	placed, heldBy := ns.placed.Load(), *ns.heldBy.Load()
	// By placement writer a shard is two sets: its records, and its entries of the directory.
	type pair struct {
		sets, sure    int
		host, leaving bool
	}
	held, whole := map[placement.Shard]*pair{}, 1
	if ns.Writers() {
		whole = 2
	}
	for _, set := range ns.Sets() {
		of := held[ns.rule.Place(set.shard)]
		if of == nil {
			of = &pair{}
			held[ns.rule.Place(set.shard)] = of
		}
		of.sets++
		if set.Proved() {
			of.sure++
		}
		host, known := set.isHost(ns.node.ID)
		of.host, of.leaving = of.host || host, of.leaving || known && !host
	}
	r.Held = len(held)
	for _, of := range held {
		switch {
		case of.sure == of.sets && (of.sets == whole || !of.host): // of one that is left, one of the two may be gone already
			r.Sure++
		case of.host:
			r.Coming++
		}
		if of.leaving {
			r.Leaving++
		}
	}
	if placed.layout == nil {
		return r, nil
	}
	r.Epoch = placed.stated.Epoch
	for s := range placement.Shard(ns.rule.Shards) {
		replicas := 0
		for _, id := range placed.layout.Hosts(s) {
			holds := held[s] != nil
			if id != ns.node.ID {
				said, ok := heldBy[id]
				holds = ok && said.has(s) && ns.Admits(id)
			} else if !holds {
				r.Coming++
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
