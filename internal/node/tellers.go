package node

import (
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
)

// Tellers are the members whose feeds tell which keys there are, this node among them. A
// value does not change.
type Tellers struct {
	// Layout stands for the layout that counts, and is 0 where none is known.
	Layout uint64
	// Of are those of the keys whose home is a shard, by home: its hosts by that layout, and those
	// that hold it still, this node too.
	Of map[placement.Shard][]ID
	// All are all of them, ascending.
	All []ID

	members *Members
	placed  *placed
	sets    *[]*Set
	heldBy  *map[ID]shardsHeld
	since   time.Time
	until   time.Time // when the first of the members' roles ends; zero if none does
}

// Tellers are those as of now: the same value as before, unless something of them may have changed.
func (ns *Namespace) Tellers() *Tellers {
	now := ns.node.Now()
	t := &Tellers{members: ns.Members(), placed: ns.placed.Load(), sets: ns.sets.Load(), heldBy: ns.heldBy.Load(), since: now}
	if old := ns.tellers.Load(); old != nil && old.members == t.members && old.placed == t.placed && old.sets == t.sets && old.heldBy == t.heldBy &&
		!now.Before(old.since) && (old.until.IsZero() || !now.After(old.until)) {
		return old
	}
	_, t.until = ns.Audience()
	counts := t.placed.layout
	t.Layout, t.Of = layoutMark(t.placed), map[placement.Shard][]ID{}
	all, own := map[ID]bool{}, map[placement.Shard]bool{}
	for _, set := range ns.Sets() {
		own[set.shard] = true
	}
	for home := range placement.Shard(ns.rule.Shards) {
		of := ns.holders(counts, home)
		if counts != nil && counts.Has(home, ns.node.ID) || own[home] {
			of = append(of, ns.node.ID)
		}
		t.Of[home] = of
		for _, id := range of {
			all[id] = true
		}
	}
	t.All = slices.Sorted(maps.Keys(all))
	ns.tellers.Store(t)
	return t
}
