package node

import (
	"slices"

	"github.com/syncd-io/syncd/internal/placement"
)

// unheard are the other members, beside its Holders, that may hold the set without having said so.
func (set *Set) unheard(holders []ID) (ids []ID) {
	if set.ns.rule == nil {
		return nil
	}
	none := *set.ns.without.Load()
	for _, m := range set.ns.Members().Active() {
		host, known := set.isHost(m.ID)
		at, heard := none.of[m.ID]
		if m.ID != set.ns.node.ID && set.ns.pledges(m.ID) && (host || !known || !heard || at.has(set.shard)) && !slices.Contains(holders, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// without is what members are known not to hold: more than what they have said under the list as
// it is now, since most changes of it give no member a shard. A member comes to hold a shard by a
// layout that names it. So what a member has said under the list as this node had it then stays
// true, but for what layouts since then give it, as long as this node has seen each of them.
type without struct {
	layouts int // statements of layouts in the list, of which one counts
	placed  *placed
	members *Members
	// of is what the member may hold. A member that is missing may hold anything.
	of map[ID]shardsHeld
}

// reckon takes up a change of the list of members, of the layout, or of what members say. updating
// is held, or the namespace is being opened.
func (ns *Namespace) reckon() {
	before := ns.without.Load()
	next := &without{layouts: ns.Members().Layouts(), placed: ns.placed.Load(), members: ns.Members(), of: map[ID]shardsHeld{}}
	digest, said := next.members.Digest(), *ns.heldBy.Load()
	for _, m := range next.members.Members() {
		h, has := said[m.ID]
		has = has && h.list == digest
		if !has && before != nil && before.leadsTo(next) {
			if h, has = before.of[m.ID]; !has && before.layouts == next.layouts {
				has = before.members.never(m.ID) // and no layout could name it
			}
		}
		if has {
			h.shards = append(make([]byte, 0, (ns.rule.Shards+7)/8), h.shards...)
			next.of[m.ID] = h
		}
	}
	if layout := next.placed.layout; layout != nil {
		for s := range placement.Shard(ns.rule.Shards) {
			for _, id := range layout.Hosts(s) {
				if h, ok := next.of[id]; ok {
					h.add(s)
					next.of[id] = h
				}
			}
		}
	}
	ns.without.Store(next)
}

// reckonedList is the digest of the list of members by which hosts are found. A list that has just come is not
// that yet, until its layout counts.
func (ns *Namespace) reckonedList() [16]byte {
	if w := ns.without.Load(); w != nil {
		return w.members.Digest()
	}
	return ns.Members().Digest()
}

// leadsTo reports whether no layout counted between the two but theirs: the same one does, or one
// that was stated since, as the only one. The table of the former one must have been here.
func (w *without) leadsTo(next *without) bool {
	if w.placed.stated == next.placed.stated {
		return w.layouts == next.layouts
	}
	return w.layouts+1 == next.layouts && w.placed.layout != nil && next.placed.stated.Epoch > w.placed.stated.Epoch
}

// never reports whether a node is not in the list, and has not been.
func (m *Members) never(id ID) bool {
	_, former := m.Former(id)
	return !former && !m.Has(id, RoleRead)
}
