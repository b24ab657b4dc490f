package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// Final is what a node held at the end.
type Final struct {
	Node int
	// Reach numbers the groups of nodes that can reach each other.
	Reach int
	// Shard is the number of the shard that the rest is about, if the namespace is cut. -1: it
	// is about the list of members alone. Members are the nodes that reach each other.
	Shard   int
	Members []int
	// Down says that the node does not run; the other fields are then ignored.
	Down bool
	// Outside says that it is not a member any more, as far as it knows.
	Outside bool
	// Roster is its list of members; nil if it has no namespace, or no list.
	Roster *Roster
	// Stated says that each member that the node waits for could say what it holds;
	// what has expired by Now must then be gone.
	Stated bool
	// Stuck says that one of them cannot, and that no admin is left that could have
	// the others wait for it no longer. Nodes may then differ for good in what can be
	// collected: some did so under the list before.
	Stuck bool
	Now   dbadapter.Timestamp
	// Dump is all records, tombstones included, by key.
	Dump []dbadapter.Record
	// Log is its kept log; nil if it is not known.
	Log []dbadapter.Kept
	// Kept is the state that the node keeps of them, Recomputed the same state
	// computed from the dump.
	Kept, Recomputed State
	// Audit is what differs by the node's own account; nil for nothing.
	Audit error
}

// State is the summary of its records that a node updates with each commit.
type State struct {
	Digest  dbadapter.Digest
	Records uint64
	Cells   []rateless.Cell
}

// Check judges the history and what the nodes hold in the end. The verdict is
// nil if no promise was broken; it names no more than 100 violations.
func (h *History) Check(finals []Final) []Violation {
	finals = slices.SortedFunc(slices.Values(finals), func(a, b Final) int { return cmp.Compare(a.Node, b.Node) })
	groups := map[int][]*Final{}
	for i := range finals {
		f := &finals[i]
		if f.Down {
			continue
		}
		groups[f.Reach] = append(groups[f.Reach], f)
		h.Kept(f)
		h.rights(f)
		h.listed(f)
		h.collected(f)
		for i := range f.Dump {
			h.observe(f.Node, &f.Dump[i])
		}
	}
	for _, reach := range slices.Sorted(maps.Keys(groups)) {
		h.equal(groups[reach])
		h.back(groups[reach])
		if !h.shards.cut() || groups[reach][0].Shard < 0 {
			h.members(groups[reach], finals)
		}
		h.durable(groups[reach])
	}
	h.intended()
	if h.shards.cut() {
		h.accounted(finals)
		h.bodies(finals)
	}
	return h.found.sorted()
}

// Kept compares what a node keeps with its records.
func (h *History) Kept(f *Final) {
	for i := 1; i < len(f.Dump); i++ {
		if slices.Compare(f.Dump[i-1].Key, f.Dump[i].Key) >= 0 {
			h.found.say(KeptState, f.Node, string(f.Dump[i].Key), "the dump holds the key twice, or out of order")
		}
	}
	a, b := &f.Kept, &f.Recomputed
	switch {
	case f.Audit != nil:
		h.found.say(KeptState, f.Node, "", "%v", f.Audit)
	case a.Records != b.Records || b.Records != uint64(len(f.Dump)):
		h.found.say(KeptState, f.Node, "", "it keeps a count of %d records, of which there are %d", a.Records, len(f.Dump))
	case a.Digest != b.Digest:
		h.found.say(KeptState, f.Node, "", "the digest it keeps is not that of its records")
	case !slices.Equal(a.Cells, b.Cells):
		h.found.say(KeptState, f.Node, "", "the cells it keeps are not those of its records")
	}
}

// equal compares nodes that reach each other with the first of them.
func (h *History) equal(group []*Final) {
	first := stamps(group[0].compared())
	for _, f := range group[1:] {
		dump := stamps(f.compared())
		for _, key := range slices.Sorted(maps.Keys(union(first, dump))) {
			a, inA := first[key]
			b, inB := dump[key]
			switch {
			case !inB:
				h.found.say(Equal, f.Node, key, "it has nothing of what node %d holds: %s", group[0].Node, a)
			case !inA:
				h.found.say(Equal, f.Node, key, "it holds %s, of which node %d has nothing", b, group[0].Node)
			case a != b:
				h.found.say(Equal, f.Node, key, "it holds %s, and node %d holds %s", b, group[0].Node, a)
			}
		}
		if f.Kept.Digest != group[0].Kept.Digest && !f.Stuck {
			h.found.say(Equal, f.Node, "", "its digest is not that of node %d", group[0].Node)
		}
	}
}

// compared are the records that must be the same at all nodes.
func (f *Final) compared() []dbadapter.Record {
	if !f.Stuck {
		return f.Dump
	}
	return slices.DeleteFunc(slices.Clone(f.Dump), func(r dbadapter.Record) bool { return Collectable(&r, f.Now) })
}

func union(a, b greatest) greatest {
	u := maps.Clone(a)
	maps.Copy(u, b)
	return u
}

// durable compares what a group holds in the end with the reference merge: at
// least one of its nodes must hold each winner. The rule equal says that all do.
func (h *History) durable(group []*Final) {
	var nodes []int
	have := greatest{}
	for _, f := range group {
		nodes = append(nodes, f.Node)
		for key, s := range stamps(f.Dump) {
			have.raise(key, s)
		}
	}
	if h.shards.cut() {
		nodes = group[0].Members
	}
	if h.shards.cut() && !group[0].Outside {
		h.stood(group, have)
	}
	merged := h.held.merge(nodes)
	for _, key := range slices.Sorted(maps.Keys(merged)) {
		w := merged[key]
		s, ok := have[key]
		switch {
		case !h.shards.in(group[0], key):
		case !ok:
			h.found.say(Durable, w.node, key, "it held %s; in the end no node has anything of the key", w.stamp)
		case w.broken(s, Durable) != "":
			h.found.say(w.broken(s, Durable), w.node, key, "it held %s; in the end the nodes hold %s, which is older", w.stamp, s)
		}
	}
}

// intended looks for the request behind each record that any node ever held. A
// record that was not acknowledged under its version must be a write of unknown
// outcome, and each of those accounts for one version. A record expires if just
// that was asked for.
func (h *History) intended() {
	type write struct {
		key              string
		value            [32]byte
		deleted, expires bool
	}
	known, open := map[sighting]bool{}, map[write]int{}
	type answer struct {
		sighting
		expires bool
	}
	asked := map[answer]bool{}
	for _, o := range h.ops {
		versions := o.made
		switch o.state {
		case refused:
			continue
		case acknowledged:
			versions = append(slices.Clone(versions), o.version)
		case unknown:
			open[write{o.key, o.value, o.deleted, o.expires}]++
		}
		for _, v := range versions {
			s := sighting{o.key, stamp{version: v, deleted: o.deleted, value: o.value, rest: untold}}
			known[s], asked[answer{s, o.expires}] = true, true
		}
	}
	var orphans []sighting
	for s := range h.seen {
		bare := s
		bare.rest, bare.content = untold, [32]byte{}
		switch {
		case reserved(s.key):
			h.intendedBody(s)
		case h.heirs[s]: // its intention is that of what it replaced
		case !known[bare]:
			orphans = append(orphans, s)
		case s.rest != untold && !asked[answer{bare, s.expires()}]:
			h.found.say(Intended, h.seen[s], s.key, "%s was asked for, but whether it expires is not as asked", s.stamp)
		}
	}
	slices.SortFunc(orphans, func(a, b sighting) int {
		if order := cmp.Compare(a.key, b.key); order != 0 || b.beats(a.stamp) {
			return cmp.Or(order, -1)
		}
		return 1
	})
	for _, s := range orphans {
		w := write{s.key, s.value, s.deleted, s.expires()}
		if open[w]--; open[w] < 0 {
			h.found.say(Intended, h.seen[s], s.key, "no application asked for %s", s.stamp)
		}
	}
}
