package check

import (
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Sync is a session that has ended, as one of its sides saw it. Each side has a
// Sync of its own.
type Sync struct {
	// Node is the side whose report it is, Peer the other.
	Node, Peer int
	Report     reconcile.Report
	// Again says that all nodes were equal before; the fields below are then
	// ignored.
	Again bool
	// Full says that the two differ in nothing but what finds an index full, and that
	// nothing else is under way. The fields below but for Before are then ignored.
	Full bool
	// Gets and Gives say which ways records travel, seen from Node.
	Gets, Gives bool
	// DryRun says that the sync finds the differences and moves nothing.
	DryRun bool
	// Lists says that a dry run lists the keys that differ, Listed which it listed.
	Lists  bool
	Listed []reconcile.KeyDifference
	// Quiet says that nothing else wrote at either side while it ran.
	Quiet bool
	// Took is how many records the store of Node took from the session, where
	// that was Counted; Failed says that the session ended with an error.
	Took            int
	Counted, Failed bool
	// Compared says that the session compared all records, and not those of a part or of
	// a prefix. Unproved says that it ended since what it found does not explain what
	// differs.
	Compared, Unproved bool
	// Wrong is what Node and Peer kept wrong before, Still what Node keeps wrong after it;
	// Struck says that more went wrong meanwhile, Stray that the session's own cells held
	// a wrong pair.
	Wrong         [2]Wrong
	Still         Wrong
	Struck, Stray bool
	// Alike is how many sums both kept wrong, and by as much: the two cannot see these.
	Alike int
	// Collisions are the indices under which the two held other records of one checksum.
	Collisions int
	// Begun and At are when the session began, and ended; Damaged is when more went wrong
	// at Node for the last time.
	Begun, At, Damaged time.Duration
	// Shard is the shard that it was about; Whole says that it moved all that differed of it.
	Shard int
	Whole bool
	// Before are the records of Node and Peer in the snapshots that the session
	// worked on; After are those when it ended for Node. After[1] is nil if the
	// peer is down, or was restored from a copy meanwhile.
	Before, After [2][]dbadapter.Record
}

// Synced judges a session: the rules idle, honest, count, keys, healed and full.
func (h *History) Synced(s *Sync) {
	r := &s.Report
	if s.Again {
		if !r.Verified || r.Differences() != 0 || r.Applied != 0 || r.Sent != 0 || r.Rejected != 0 {
			h.found.say(Idle, s.Node, "", "all nodes were equal, and a sync with node %d found %d differences, applied %d, sent %d, rejected %d, verified %v",
				s.Peer, r.Differences(), r.Applied, r.Sent, r.Rejected, r.Verified)
		}
		return
	}
	if s.Full {
		h.full(s)
		return
	}
	if h.healed(s); s.Unproved {
		return // it moved nothing, or what it could
	}
	if s.Counted && (r.Applied > s.Took || r.Applied < s.Took && !s.Failed) {
		h.found.say(Count, s.Node, "", "a sync with node %d counts %d records as applied; the store took %d", s.Peer, r.Applied, s.Took)
	}
	if s.DryRun {
		if r.Applied != 0 || r.Sent != 0 {
			h.found.say(Count, s.Node, "", "a dry run with node %d applied %d records and sent %d", s.Peer, r.Applied, r.Sent)
		}
		h.listsKeys(s)
	}
	before := [2]greatest{stamps(s.Before[0]), stamps(s.Before[1])}
	if r.Verified {
		h.honest(s, before)
	}
	if s.DryRun {
		return
	}
	// News are the peer's records that win over those of this side.
	news, again := 0, 0 // again: of what a node that recovers has removed meanwhile
	for key, theirs := range before[1] {
		if !before[0].covers(key, theirs) {
			news++
		} else if h.freed(s.Node, key, before[0][key], true) {
			again++
		}
	}
	if !s.Gets {
		news = 0
	}
	switch {
	case r.Applied > news+again:
		h.found.say(Count, s.Node, "", "a sync with node %d counts %d records as applied, of %d that were news", s.Peer, r.Applied, news)
	case r.Applied < news && s.Quiet && r.Verified:
		h.found.say(Count, s.Node, "", "a verified sync with node %d counts %d records as applied, of %d that were news and had no other source", s.Peer, r.Applied, news)
	}
}

// honest checks that a verified sync made both sides equal.
func (h *History) honest(s *Sync, before [2]greatest) {
	if s.Report.Method == wire.MethodSame && !maps.Equal(before[0], before[1]) {
		h.found.say(Honest, s.Node, "", "a sync with node %d said \"same\" of %d and %d records that differ", s.Peer, len(before[0]), len(before[1]))
	}
	if differ, found := differences(before), s.Report.Differences(); s.Report.Method == wire.MethodSketch && (found > differ || found == 0 && differ > 0) {
		h.found.say(Honest, s.Node, "", "a verified sync with node %d found %d differences of sets that differ in %d keys", s.Peer, found, differ)
	}
	if s.DryRun {
		return
	}
	both := stamps(s.Before[0], s.Before[1])
	for side, dump := range s.After {
		if side == 1 && dump == nil {
			continue
		}
		after := stamps(dump)
		for _, key := range slices.Sorted(maps.Keys(both)) {
			must := both[key]
			if _, ok := after[key]; !after.covers(key, must) && !h.freed([2]int{s.Node, s.Peer}[side], key, must, ok) {
				h.found.say(Honest, s.Node, key, "the sync between the nodes %d and %d is verified, and node %d lacks %s", s.Node, s.Peer, [2]int{s.Node, s.Peer}[side], must)
			}
		}
	}
}

// differences is in how many keys two sets differ.
func differences(sets [2]greatest) (n int) {
	for key := range union(sets[0], sets[1]) {
		if sets[0][key] != sets[1][key] { // no record has a zero stamp
			n++
		}
	}
	return n
}
