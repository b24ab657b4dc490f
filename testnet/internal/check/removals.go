package check

import (
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// removals is what left nodes that held it.
type removals struct {
	// at is, for each node and key, the greatest record that was removed there since
	// its disk was last replaced.
	at reference
	// keptOut is the part of it that the node keeps out. That is what it removed while
	// it did not recover, and has not recovered since. recovering are the nodes that
	// do.
	keptOut    reference
	recovering map[int]bool
	// announced are removals that a node may have died before; true if it then lists
	// the record.
	announced map[int]map[sighting]bool
	// collected is the greatest record of each key that was collected anywhere.
	collected greatest
	// floors are what nodes said last of their floors, since their disks were replaced.
	floors map[int]time.Time
	// excused: a person, or a copy, has done what makes nodes set records aside.
	excused bool
}

// Removing notes that a node is about to remove a record that it holds. It may die
// first. aside says that it is to list the record.
func (h *History) Removing(node int, r *dbadapter.Record, aside bool) {
	if h.gone.announced[node] == nil {
		h.gone.announced[node] = map[sighting]bool{}
	}
	h.gone.announced[node][sighting{string(r.Key), stampOf(r)}] = aside
}

// Collected notes that a node has removed a tombstone, or a record that had expired,
// for good. waited are the nodes that it waits for by its list of members. Each must
// have held the record, or a later one of its key, unless nodes may set aside. What
// they would set aside goes if it had expired.
func (h *History) Collected(node int, r *dbadapter.Record, waited []int) {
	key, s := string(r.Key), stampOf(r)
	if !r.Deleted && r.Expires == 0 {
		h.found.say(Lost, node, key, "it has collected %s, which was alive", s)
	}
	for _, other := range waited {
		if other == node || h.gone.excused {
			continue
		}
		if !h.held[other].covers(key, s) && !h.gone.at[other].covers(key, s) {
			h.found.say(Early, node, key, "it has collected %s, which node %d has never held", s, other)
		}
	}
	h.gone.collected.raise(key, s)
	h.remove(node, key, s)
}

// SetAside notes that a node has set a record aside, for a person, when its clock said now.
// What has expired by then may be set aside. The peer that declines it may have collected it,
// or have a floor that waits for this node; by another clock it may be alive.
func (h *History) SetAside(node int, r *dbadapter.Record, now time.Time) {
	key, s := string(r.Key), stampOf(r)
	if !h.gone.excused && !h.superseded(key, s) && !r.Expired(now) {
		h.found.say(Aside, node, key, "it has set %s aside; no node was restored, nor left behind by the others", s)
	}
	h.remove(node, key, s)
	h.setAside(node, sighting{key, s})
}

// Floored notes up to when a node says that it has collected.
func (h *History) Floored(node int, floor time.Time) {
	if was := h.gone.floors[node]; floor.Before(was) {
		h.found.say(Floor, node, "", "its floor was %s, and is %s now", was.UTC(), floor.UTC())
	}
	h.gone.floors[node] = floor
}

// Excuse notes that from now on nodes may set records aside. The members were told not
// to wait for one, or its right to write was taken.
func (h *History) Excuse() {
	h.gone.excused = true
}

// superseded reports whether a greater write of the key was acknowledged.
func (h *History) superseded(key string, s stamp) bool {
	return slices.ContainsFunc(h.ops, func(o op) bool {
		return o.state == acknowledged && o.key == key && o.stamp().beats(s)
	})
}

// Recovering notes whether a node recovers from now on: it may lack what it, or the
// members, once held, and keeps nothing out. What it had collected, and no other node
// keeps out, may come back; docs/decisions/0020-watermark.md says why.
func (h *History) Recovering(node int, does bool) {
	h.gone.recovering[node] = does
	if does {
		delete(h.gone.keptOut, node)
	}
}

func (h *History) remove(node int, key string, s stamp) {
	h.gone.at.raise(node, key, s)
	if !h.gone.recovering[node] {
		h.gone.keptOut.raise(node, key, s)
	}
	if held, ok := h.held[node][key]; ok && !held.beats(s) {
		delete(h.held[node], key)
	}
}

// left reports whether a node has removed a record, or a greater one of its key; a
// removal that was only announced counts, too.
func (h *History) left(node int, key string, s stamp) bool {
	if h.gone.at[node].covers(key, s) {
		return true
	}
	for one, aside := range h.gone.announced[node] {
		if one.key == key && one.alike(s) {
			h.remove(node, key, s)
			if aside {
				h.setAside(node, one)
			}
			return true
		}
	}
	return false
}

// freed reports whether a node has removed a record: it lacks that, or, if its key is
// taken, has an older one there. A node that recovers keeps nothing out.
func (h *History) freed(node int, key string, s stamp, taken bool) bool {
	return h.left(node, key, s) && (!taken || !h.gone.keptOut[node].covers(key, s))
}

// remembered reports whether one of these nodes holds a record, or a later one, or keeps
// it out. A node that was removed can tell the others nothing.
func (h *History) remembered(group []*Final, key string, s stamp) bool {
	for _, of := range []reference{h.held, h.gone.keptOut} {
		for _, f := range group {
			if of[f.Node].covers(key, s) {
				return true
			}
		}
	}
	return false
}

// Collectable reports whether a record is one that nodes collect: it was deleted, or
// has expired.
func Collectable(r *dbadapter.Record, now dbadapter.Timestamp) bool {
	return r.Deleted || r.Expires != 0 && r.Expires <= now
}

// collected looks for what should have been collected.
func (h *History) collected(f *Final) {
	if !f.Stated {
		return
	}
	for i := range f.Dump {
		if r := &f.Dump[i]; Collectable(r, f.Now) {
			h.found.say(Collected, f.Node, string(r.Key), "it holds %s still, which was deleted or has expired, and all members hold it", stampOf(r))
		}
	}
}

// back looks for what was collected and is there in the end, at nodes that are not
// alone. One that the others do not sync with keeps what it has.
func (h *History) back(group []*Final) {
	for _, f := range group {
		dump := stamps(f.Dump)
		for _, key := range slices.Sorted(maps.Keys(dump)) {
			was, ok := h.gone.collected[key]
			if ok && len(group) > 1 && !dump[key].beats(was) && dump[key] != was && h.remembered(group, key, was) {
				h.found.say(Resurrect, f.Node, key, "it holds %s in the end; %s was collected", dump[key], was)
			}
		}
	}
}
