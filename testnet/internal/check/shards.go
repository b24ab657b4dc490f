package check

import (
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// A namespace that is cut into shards.
//
// A holder of a shard is *whole* if it was there when nothing had been lost: it was found
// equal, in a sync of everything, with a whole holder, or with another one where no whole one
// is left. What all whole holders hold at one moment is *spread*: a later whole holder holds
// it, too, and a read that is sure gives it, or what came behind it. This is not what a node
// says of itself, which is what the rule judges.

// shards is what is known of the shards' holders.
type shards struct {
	home func(key string) int // nil: the namespace is not cut
	// holders of each shard, and whether they are whole.
	holders map[int]map[int]bool
	// spread is, of each key, the greatest record that was.
	spread map[string]stamp
	// since is from when on something is spread of each key, as far as was looked at.
	since map[string]time.Duration
	now   func() time.Duration
	// away are the nodes that were removed for good.
	away map[int]bool
	// behind are, of each shard, the holders that took what they hold from a node whose files
	// were put back, which nothing tells: until they are whole.
	behind map[int]map[int]bool
	// met is, of a shard's holder and another node, what the holder had when they were found
	// equal last, since it holds the shard.
	met map[meeting]map[string]stamp
}

// meeting is of two nodes, which hold a shard both.
type meeting struct{ shard, node, peer int }

func (s *shards) cut() bool { return s.home != nil }

// of reports whether a key belongs to what a final is about.
func (s *shards) of(f *Final, key string) bool { return !s.cut() || s.home(key) == f.Shard }

// Sharded notes that the namespace is cut, the shard of each key, and the clock of the run.
func (h *History) Sharded(home func(key string) int, now func() time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shards = shards{home: home, now: now, since: map[string]time.Duration{}, holders: map[int]map[int]bool{}, spread: map[string]stamp{}, away: map[int]bool{}, met: map[meeting]map[string]stamp{}, behind: map[int]map[int]bool{}}
}

// Holds notes that a node holds a shard, and nothing of it if it did not before.
func (h *History) Holds(node, shard int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.shards
	if s.holders[shard] == nil {
		s.holders[shard] = map[int]bool{}
	}
	if _, known := s.holders[shard][node]; !known {
		h.spreads(shard)
		s.holders[shard][node] = false
	}
}

// Left notes that a node has dropped a shard, of which it held these records. hosts are those
// that it handed the shard over to: each holds what the node had when the two were found equal
// last. What came to the node since it was given by a host, or by one that has the same duty
// (package quorum, 15): a host holds it.
func (h *History) Left(node, shard int, hosts []int, dump []dbadapter.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spreads(shard)
	for i := range dump {
		key, must := string(dump[i].Key), stampOf(&dump[i])
		excused := func(host int) bool { return h.disks[host] > 0 || h.shards.away[host] }
		has := func(host int) bool {
			held, ok := h.hold().held(host, key)
			return ok && !must.beats(held) || h.left(host, key, must)
		}
		late := 0 // hosts which the node has not met since the record came to it
		for _, host := range hosts {
			met, ever := h.shards.met[meeting{shard, node, host}]
			switch had, ok := met[key]; {
			case excused(host) || has(host):
			case ever && (!ok || must.beats(had)):
				late++
			default:
				h.found.say(Handover, node, key, "it has dropped shard %d with %s, of which node %d, a host, has nothing", shard, must, host)
			}
		}
		if late > 0 && !slices.ContainsFunc(hosts, has) {
			h.found.say(Handover, node, key, "it has dropped shard %d with %s, which came late, and of which no host has anything", shard, must)
		}
	}
	maps.DeleteFunc(h.shards.met, func(m meeting, _ map[string]stamp) bool {
		return m.shard == shard && (m.node == node || m.peer == node)
	})
	delete(h.shards.holders[shard], node)
	delete(h.shards.behind[shard], node)
	h.forgetShard(node, shard)
	h.spreads(shard)
}

// forgetShard ends what a node must hold of a shard.
func (h *History) forgetShard(node, shard int) {
	of := func(key string) bool { return h.shards.home(key) == shard }
	for _, r := range []reference{h.hold(), h.gone.at, h.gone.keptOut} {
		maps.DeleteFunc(r[node], func(key string, _ stamp) bool { return of(key) })
	}
	must := h.lists.at[node]
	for _, listed := range []map[sighting]bool{must.aside, must.lost} {
		maps.DeleteFunc(listed, func(s sighting, _ bool) bool { return of(s.key) })
	}
}

// Removed notes that a node was removed for good: what it alone held may be lost.
// done says that it has happened; otherwise it may at any time.
func (h *History) Removed(node int, done bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.shards.cut():
	case done:
		h.shards.away[node] = true
		h.shards.lost(h)
	default:
		clear(h.shards.spread)
	}
}

// Joins notes that a node may be a member again.
func (h *History) Joins(node int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.shards.away, node)
}

// restored follows a restore: the node may lack what came since, and others may hold nothing
// of it.
func (s *shards) restored(h *History, node int) {
	for _, of := range s.holders {
		delete(of, node)
	}
	maps.DeleteFunc(s.met, func(m meeting, _ map[string]stamp) bool { return m.node == node || m.peer == node })
	if s.cut() {
		s.lost(h)
	}
}

// lost ends that what no whole holder holds any more is spread.
func (s *shards) lost(h *History) {
	for key, must := range s.spread {
		if !slices.ContainsFunc(s.whole(s.home(key)), func(node int) bool {
			held, ok := h.hold().held(node, key)
			return ok && !must.beats(held)
		}) {
			delete(s.spread, key)
		}
	}
}

// whole are the whole holders of a shard, in order.
func (s *shards) whole(shard int) (nodes []int) {
	for node, whole := range s.holders[shard] {
		if whole && !s.away[node] {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// old reports whether a holder may be behind, with nothing that tells it: its files were put
// back, or it has met nothing but such a holder since.
func (h *History) old(node, shard int) bool {
	s := &h.shards
	return (h.disks[node] > 0 || s.behind[shard][node]) && !s.holders[shard][node]
}

// synced follows a sync: a holder that is proved equal with a whole one is whole.
func (s *shards) synced(h *History, sync *Sync) {
	of := s.holders[sync.Shard]
	if !s.cut() || !sync.Whole || sync.Failed || !sync.Report.Verified {
		return
	}
	_, here := of[sync.Node]
	_, there := of[sync.Peer]
	if here && there {
		s.met[meeting{sync.Shard, sync.Node, sync.Peer}] = stamps(sync.Before[0])
	}
	if !here || !there || of[sync.Node] || !of[sync.Peer] && len(s.whole(sync.Shard)) > 0 {
		if here && h.old(sync.Peer, sync.Shard) && !of[sync.Node] {
			if s.behind[sync.Shard] == nil {
				s.behind[sync.Shard] = map[int]bool{}
			}
			s.behind[sync.Shard][sync.Node] = true
		}
		return
	}
	of[sync.Node] = true
	// What came to the peer during the sync the two need not share yet.
	given := stamps(sync.Before[1])
	for key, must := range s.spread {
		if has, ok := given[key]; s.home(key) == sync.Shard && (!ok || must.beats(has)) {
			delete(s.spread, key)
		}
	}
}

// spreads notes what is spread of a shard.
func (h *History) spreads(shard int) {
	whole := h.shards.whole(shard)
	if len(whole) == 0 {
		return
	}
	for key := range h.hold()[whole[0]] {
		if h.shards.home(key) == shard {
			h.spreadOf(key, whole)
		}
	}
}

// spreadOf notes what is spread of a key, of which these are the whole holders.
func (h *History) spreadOf(key string, whole []int) {
	var least stamp
	for i, node := range whole {
		held, ok := h.hold().held(node, key)
		if !ok {
			return
		}
		if i == 0 || least.beats(held) {
			least = held
		}
	}
	was, ok := h.shards.spread[key]
	if len(whole) > 0 && (!ok || least.beats(was)) {
		h.shards.spread[key] = least
	}
	if len(whole) > 0 && !ok {
		h.shards.since[key] = h.shards.now()
	}
}

// Made notes a version that a write of an unknown outcome has.
func (h *History) Made(o Op, version dbadapter.Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops[o].made = append(h.ops[o].made, version)
}

// AcknowledgeAt notes that a write is acknowledged, and which nodes hold it durably.
func (h *History) AcknowledgeAt(o Op, version dbadapter.Version, hosts []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &h.ops[o]
	w.state, w.version = acknowledged, version
	s := stamp{version, w.deleted, w.content, untold}
	for _, host := range hosts {
		h.sight(host, w.key, s)
		held, ok := h.hold().held(host, w.key)
		_, holds := h.shards.holders[h.shards.home(w.key)][host]
		if holds && h.disks[host] == 0 && (!ok || s.beats(held)) && !h.left(host, w.key, s) {
			h.found.say(Durable, host, w.key, "it is counted as a host that holds %s durably, and has nothing of it", s)
		}
	}
}

// AnswerAge is how old what a locator has heard may be.
const AnswerAge = 5 * time.Second

// Read is one read of a key.
type Read struct {
	Node int
	Key  string
	must stamp
	has  bool
	long bool // something was there for longer than AnswerAge
	disk map[int]int
}

// Reading notes that a key is about to be read at a node.
func (h *History) Reading(node int, key string) *Read {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spreadOf(key, h.shards.whole(h.shards.home(key)))
	r := &Read{Node: node, Key: key, disk: maps.Clone(h.disks)}
	r.must, r.has = h.shards.spread[key]
	r.long = r.has && h.shards.now()-h.shards.since[key] > AnswerAge
	return r
}

// WasRead notes what a read has found: a record, a tombstone too, or nothing; whether that is
// sure, and by which nodes.
func (h *History) WasRead(r *Read, record *dbadapter.Record, sure bool, by []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found stamp
	if record != nil {
		found = stampOf(record)
		if _, seen := h.seen[sighting{r.Key, found}]; !seen {
			h.found.say(Answer, r.Node, r.Key, "a read gave %s, which no node ever held", found)
		}
	}
	if !sure || !r.has || record != nil && !r.must.beats(found) {
		return
	}
	if now, still := h.shards.spread[r.Key]; !still || r.must.beats(now) {
		return // it was lost meanwhile, with those that held it
	}
	if record == nil && h.deletedSince(r.Key, r.must) {
		return // by now that is collected
	}
	if slices.ContainsFunc(by, func(node int) bool { return h.shards.away[node] }) {
		return // it has not heard that it is no host any more
	}
	if slices.ContainsFunc(by, func(node int) bool { return h.old(node, h.shards.home(r.Key)) }) {
		return // its files were put back, or another's that it met, and nothing tells it
	}
	what := "nothing"
	if record != nil {
		what = found.String()
	}
	h.found.say(Answer, r.Node, r.Key, "a read was sure of %s, by the nodes %v; all hosts that were whole held %s before", what, by, r.must)
}

// Nowhere notes that a node has called a key nowhere without asking any, by what these have told.
// All of them have told so within AnswerAge.
func (h *History) Nowhere(r *Read, by []int) {
	if r.long {
		h.WasRead(r, nil, true, by)
	}
}

// deletedSince reports whether a deletion of a key may be behind a record.
func (h *History) deletedSince(key string, s stamp) bool {
	return s.deleted || slices.ContainsFunc(h.ops, func(o op) bool {
		return o.deleted && o.key == key && o.state != refused &&
			(len(o.made) == 0 && o.state == unknown || slices.ContainsFunc(o.made, func(v dbadapter.Version) bool { return (stamp{version: v}).beats(stamp{version: s.version}) }))
	})
}

// Last judges a read when all hosts are equal: it is sure, and right.
func (h *History) Last(r *Read, record *dbadapter.Record, sure bool, why error, held *dbadapter.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case why != nil:
		h.found.say(Answer, r.Node, r.Key, "all hosts are equal and in reach, and a read fails: %v", why)
	case !sure:
		h.found.say(Answer, r.Node, r.Key, "all hosts are equal and in reach, and a read is not sure")
	case (record == nil) != (held == nil), record != nil && stampOf(record) != stampOf(held):
		h.found.say(Answer, r.Node, r.Key, "all hosts are equal, and a read gives another record than they hold")
	}
}
