package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// The rule full: an index has room for so many records that are not tombstones, and for
// so many keys. Nodes that are full of different keys differ for good, in these alone.

// What an index has room for, by docs/protocol.
const (
	roomAlive = 64
	roomKeys  = 256
)

// Lack is the greatest record of a key, which a node cannot hold: its index is full there.
type Lack struct {
	Node    int
	Key     string
	Version dbadapter.Version
	// Held is a node that holds it, Expires says that it does so for a time only.
	Held    int
	Expires bool
	// Collectable: the node may have collected the record, and not lack it, unless it
	// lists the record as declined.
	Collectable bool
}

// fills are how many records and keys a node holds under each index.
type fills struct{ alive, keys map[dbadapter.Index]int }

func fillsOf(dump []dbadapter.Record, index func(key []byte) dbadapter.Index) fills {
	f := fills{map[dbadapter.Index]int{}, map[dbadapter.Index]int{}}
	for i := range dump {
		at := index(dump[i].Key)
		f.keys[at]++
		if !dump[i].Deleted {
			f.alive[at]++
		}
	}
	return f
}

// Lacking lists what nodes that reach each other lack for want of room, by node and key.
// settled is false if they differ in anything else. What has been collected at some does
// not count: what finds its index full holds the others back.
func Lacking(group []Final, index func(key []byte) dbadapter.Index, now dbadapter.Timestamp) (lacks []Lack, settled bool) {
	dumps := reference{} // by place in the group
	var places []int
	for i := range group {
		dumps[i] = stamps(group[i].Dump)
		places = append(places, i)
	}
	winners := dumps.merge(places)
	keys := slices.Sorted(maps.Keys(winners))
	for i := range group {
		room := fillsOf(group[i].Dump, index)
		for _, key := range keys {
			w := winners[key]
			held, ok := dumps[i][key]
			at := index([]byte(key))
			collectable := w.deleted || w.expires() && w.expiry() <= now
			switch {
			case ok && held == w.stamp:
				continue
			case !ok && room.keys[at] >= roomKeys:
			case !w.deleted && (!ok || held.deleted) && room.alive[at] >= roomAlive:
			case !ok && collectable:
				continue
			default:
				return nil, false
			}
			lacks = append(lacks, Lack{group[i].Node, key, w.version, group[w.node].Node, w.expires(), !ok && collectable})
		}
	}
	slices.SortFunc(lacks, func(a, b Lack) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Key, b.Key)) })
	return lacks, true
}

// Overfull holds each node to the room of an index.
func (h *History) Overfull(group []Final, index func(key []byte) dbadapter.Index) {
	for i := range group {
		f := fillsOf(group[i].Dump, index)
		for _, at := range slices.Sorted(maps.Keys(f.keys)) {
			if f.alive[at] > roomAlive || f.keys[at] > roomKeys {
				h.found.say(Full, group[i].Node, "", "under index %d it holds %d records of %d keys", at, f.alive[at], f.keys[at])
			}
		}
	}
}

// Listed wants what a node lacks among what it lists as declined.
func (h *History) Listed(l Lack, lists bool) {
	if !lists {
		h.found.say(Full, l.Node, l.Key, "it has no room for version %s, which node %d holds, and does not list that", l.Version, l.Held)
	}
}

// full judges a sync of two nodes that differ in nothing but what finds an index full. The
// sync moves nothing, declines that, and says that the two are equal only if they are. What
// a side has declined once is withheld from it, and counts as declined. That holds, too,
// where it has since found room for what a third one brought. Two that differ in what may
// be collected are not judged.
func (h *History) full(s *Sync) {
	before := [2]greatest{stamps(s.Before[0]), stamps(s.Before[1])}
	lacks := 0
	for side, mine := range before {
		for key, theirs := range before[1-side] {
			if _, ok := mine[key]; !ok && (theirs.deleted || theirs.expires()) {
				return // it may have been collected there, or not have come yet
			}
			if !mine.covers(key, theirs) {
				lacks++
			}
		}
	}
	r := &s.Report
	if r.Verified != (lacks == 0) || r.Applied != 0 || r.Rejected < lacks || r.DeclinedHere.Sum()+r.DeclinedThere.Sum() != r.Rejected {
		h.found.say(Full, s.Node, "", "node %d and this one have no room for %d records of one another, and a sync applied %d, declined %d (here %d, there %d), verified %v",
			s.Peer, lacks, r.Applied, r.Rejected, r.DeclinedHere.Sum(), r.DeclinedThere.Sum(), r.Verified)
	}
}
