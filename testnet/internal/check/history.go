package check

import (
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Op is a write that was intended.
type Op int

// History is what happened. It is for one goroutine at a time; what happened at one
// node must be told in its order.
type History struct {
	ops []op
	// held is what nodes are known to hold. seen are all records that any node ever
	// held, each with the first node. names is the key and content of each version.
	held reference
	// copies are, for each node, what it was known to hold when the last copy
	// of its disk was made.
	copies reference
	seen   map[sighting]int
	names  map[dbadapter.Version]sighting
	disks  map[int]int // how often each node's was replaced
	helds  []heldAt
	found  verdict
	// restamps are the replacements that were intended, and heirs the records
	// that they would put in place.
	restamps map[restamp]bool
	heirs    map[sighting]bool
	gone     removals
	// listing is what the kept logs must list, each node's since its disk was last replaced;
	// copiedListing is that of the last copy of each node's disk.
	listing, copiedListing map[int]map[entry]bool
	// grants are the roles that nodes were asked to give, the founder's first.
	grants []grant
	wounds map[int]wound // by node
	awaits []await
	// logs are the change logs of nodes that are watched, and watches the programs that do.
	logs    map[dbadapter.LogID]*changeLog
	watches map[watchOf]*watch
	shards  shards
}

// New is a history of nothing.
func New() *History {
	return &History{
		held: reference{}, copies: reference{}, seen: map[sighting]int{}, names: map[dbadapter.Version]sighting{}, disks: map[int]int{},
		found:    verdict{seen: map[Violation]bool{}},
		restamps: map[restamp]bool{}, heirs: map[sighting]bool{},
		gone: removals{
			at: reference{}, keptOut: reference{}, recovering: map[int]bool{}, announced: map[int]map[sighting]bool{},
			collected: greatest{}, floors: map[int]time.Time{},
		},
		listing: map[int]map[entry]bool{}, copiedListing: map[int]map[entry]bool{}, wounds: map[int]wound{},
		logs: map[dbadapter.LogID]*changeLog{}, watches: map[watchOf]*watch{},
		shards: shards{of: map[int]*shard{}},
	}
}

// restamp is the replacement of a version at a node by a lesser one.
type restamp struct {
	node     int
	key      string
	from, to dbadapter.Version
}

// op is a write that an application asked for.
type op struct {
	node    int
	key     string
	value   [32]byte
	content [32]byte // zero: of a pointer, which is not known
	deleted bool
	expires bool
	state   state
	version dbadapter.Version   // if acknowledged
	made    []dbadapter.Version // of a write that hosts of a shard are to hold: those that it had
	// over is the record of the key that the node held at the request, if any. disk
	// counts how often the node's disk had been replaced.
	over *stamp
	disk int
	// proved: a verified sync has shown it to another node.
	proved bool
	// In a namespace of shards: conditional on a version, dated by its data, acknowledged at quorum
	// after so many failures of its shard's hosts.
	conditional, dated, quorum bool
	durably                    bool // a majority was asked for
	on                         dbadapter.Version
	fails                      int
	voids                      map[int]int // of all shards, when it was intended
}

type state uint8

const (
	unknown state = iota
	acknowledged
	refused
)

// sighting is a record that a node held.
type sighting struct {
	key string
	stamp
}

// Intend notes a write at a node before it is sent there.
func (h *History) Intend(node int, key string, deleted bool, value []byte) Op {
	w := op{node: node, key: key, deleted: deleted, value: valueOf(&dbadapter.Record{Value: value}), content: contentOf(deleted, value), voids: h.shards.voids(), disk: h.disks[node]}
	if s, ok := h.held[node][key]; ok {
		w.over = &s
	}
	h.ops = append(h.ops, w)
	return Op(len(h.ops) - 1)
}

// Expiring notes that the record of an intended write is to expire.
func (h *History) Expiring(o Op) {
	h.ops[o].expires = true
}

// Acknowledge notes that the node has answered: the write is durable, under
// that version.
func (h *History) Acknowledge(o Op, version dbadapter.Version) {
	w := &h.ops[o]
	w.state, w.version = acknowledged, version
	s := w.stamp()
	h.sight(w.node, w.key, s)
	// An import has the date of its data; any other write is later than the
	// records that its writer held.
	if w.over != nil && w.over.beats(s) && w.disk == h.disks[w.node] && version.Writer != 0 {
		h.found.say(Backwards, w.node, w.key, "the node held %s, and was then asked to write %s", w.over, s)
	}
	h.held.raise(w.node, w.key, s)
}

// Restamping notes that the node is about to put a record in the place of one
// with the same content and a greater version. It may die first.
func (h *History) Restamping(node int, from dbadapter.Version, r *dbadapter.Record) {
	h.restamps[restamp{node, string(r.Key), from, r.Version}] = true
	h.heirs[sighting{string(r.Key), stampOf(r)}] = true
}

// restamped reports whether a record took the place of a greater one as
// Restamping announced it.
func (h *History) restamped(node int, key string, old, s stamp) bool {
	return h.restamps[restamp{node, key, old.version, s.version}] && old.content == s.content && old.deleted == s.deleted && old.sameExpiry(s)
}

// Latest is the version of a key that was acknowledged last at a node; zero for none.
func (h *History) Latest(node int, key string) (v dbadapter.Version) {
	for i := range h.ops {
		if o := &h.ops[i]; o.node == node && o.key == key && o.state == acknowledged {
			v = o.version
		}
	}
	return v
}

// Refuse notes that the write is not made, and never will be.
func (h *History) Refuse(o Op) {
	h.ops[o].state = refused
}

// Copied notes that a copy of the node's disk replaces the last copy. The copy
// must have all that is durable at the node by now.
func (h *History) Copied(node int) {
	h.copies[node] = maps.Clone(h.held[node])
	h.copiedListing[node] = maps.Clone(h.listing[node])
}

// Restored notes that an older copy replaced the node's disk. Its records may go back,
// this once, to those that it held when [History.Copied] was called; to any, if it
// never was.
func (h *History) Restored(node int) {
	h.held[node] = maps.Clone(h.copies[node]) // what the copy does not hold is forgotten
	h.listing[node] = maps.Clone(h.copiedListing[node])
	h.forgetLogs(node)
	h.shards.restored(node)
	delete(h.gone.at, node)
	delete(h.gone.keptOut, node)
	delete(h.gone.announced, node)
	delete(h.gone.floors, node)
	h.gone.excused = true
	h.disks[node]++
}

// Observe notes a record that is durable at a node: it was applied, or read.
func (h *History) Observe(node int, r *dbadapter.Record) {
	if old, ok := h.held[node][string(r.Key)]; ok {
		h.replaced(node, string(r.Key), stampOf(r), old)
	}
	h.observe(node, r)
}

// Started notes all records that a node holds after a new start.
func (h *History) Started(node int, dump []dbadapter.Record) {
	delete(h.wounds, node) // what called for an audit was in memory
	there := make(map[string]bool, len(dump))
	for i := range dump {
		there[string(dump[i].Key)] = true
		h.observe(node, &dump[i])
	}
	for _, key := range slices.Sorted(maps.Keys(h.held[node])) {
		if !there[key] && !h.left(node, key, h.held[node][key]) {
			h.found.say(Durable, node, key, "the node held %s, was started again, and has nothing of it", h.held[node][key])
		}
	}
}

func (h *History) observe(node int, r *dbadapter.Record) {
	key, s := string(r.Key), stampOf(r)
	h.sight(node, key, s)
	old, ok := h.held[node][key]
	switch {
	case !ok || !old.beats(s):
	case h.restamped(node, key, old, s):
		h.held[node][key] = s
		h.disks[node]++ // what was asked before may be earlier than what was held then
		return
	default:
		h.found.say(old.broken(s, Backwards), node, key, "the node held %s, and later %s", old, s)
	}
	h.held.raise(node, key, s)
}

// sight notes that a node held a record, and compares it with other records of
// its version. The version of an import is only a date, and may have several
// records.
func (h *History) sight(node int, key string, s stamp) {
	one := sighting{key, s}
	if _, ok := h.seen[one]; !ok {
		h.seen[one] = node
	}
	if s.version.Writer == 0 {
		return
	}
	first, ok := h.names[s.version]
	switch {
	case !ok:
		h.names[s.version] = one
	case first.key != key:
		h.found.say(Identity, node, key, "it is %s, which at node %d is a write of %q", s, h.seen[first], first.key)
	case first.rest == untold && first.alike(one.stamp):
		h.names[s.version] = one
	case !first.alike(one.stamp):
		h.found.say(Identity, node, key, "it is %s, which at node %d is %s", s, h.seen[first], first.stamp)
	}
}

// Measured compares a measurement of the process with its bound: descriptors with
// those at the start, memory with what the nodes may take.
func (h *History) Measured(what string, value, limit int64) {
	if value > limit {
		h.found.say(Leak, -1, "", "%s: %d, at most %d allowed", what, value, limit)
	}
}
