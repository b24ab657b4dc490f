package node

import (
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
)

// Replicas says how the shards stand; ErrOneShard.
func (ns *Namespace) Replicas() (r status.Shards, err error) {
	if ns.rule == nil {
		return r, ErrOneShard
	}
	placed, heldBy := ns.placed.Load(), *ns.heldBy.Load()
	held := map[placement.Shard]bool{}
	for _, set := range ns.Sets() {
		held[set.shard] = true
		host, known := set.isHost(ns.node.ID)
		switch {
		case !set.Recovers():
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
				holds = ok && bit(said.Shards, s) && ns.Admits(id)
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
