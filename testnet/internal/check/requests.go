package check

import (
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// What requests of a key in a namespace of shards come to.

// Request is one request of a key, under way.
type Request struct {
	Node   int
	Key    string
	Quorum bool // it asks for a quorum, or for all
	must   stamp
	has    bool // must is there: the latest record when it began
	voids  int  // of the shard, when it began
}

// Asks notes that a request of a key begins at a node.
func (h *History) Asks(node int, key string, quorum bool) *Request {
	r := &Request{Node: node, Key: key, Quorum: quorum, voids: h.shards.at(h.shards.home(key)).voids}
	r.must, r.has = h.shards.latest[key]
	return r
}

// holds reports whether what was acknowledged before a request still counts.
func (h *History) holds(r *Request) bool { return h.shards.at(h.shards.home(r.Key)).voids == r.voids }

// judged reports whether what a request comes to is judged by what was acknowledged before it.
func (h *History) judged(r *Request) bool {
	return r.Quorum && r.has && h.holds(r) && !h.shards.at(h.shards.home(r.Key)).apart
}

// Read judges what a read that has succeeded has found: a record, a tombstone too, or nothing.
func (h *History) Read(r *Request, record *dbadapter.Record) {
	h.told(r, record)
	if h.judged(r) {
		h.notOlder(r, record, r.must, "a quorum read")
	}
}

// ReadAtLeast judges a read that asked for a version or a later one, and has succeeded.
func (h *History) ReadAtLeast(r *Request, record *dbadapter.Record, version dbadapter.Version) {
	h.told(r, record)
	for _, o := range h.ops {
		if o.key == r.Key && o.state == acknowledged && o.version == version && h.holds(r) {
			h.notOlder(r, record, o.stamp(), "a read of that version at least")
		}
	}
}

// told judges that what was read is what a node has held.
func (h *History) told(r *Request, record *dbadapter.Record) {
	if record == nil {
		return
	}
	if found := h.given(record); !h.sighted(r.Key, found) {
		h.found.say(Answer, r.Node, r.Key, "a read gave %s, which no node ever held", found)
	}
}

// notOlder judges that what was read is not older than a record.
func (h *History) notOlder(r *Request, record *dbadapter.Record, must stamp, what string) {
	if record == nil {
		if !h.mayBeGone(r.Key, must) {
			h.found.say(Answer, r.Node, r.Key, "%s gave nothing; %s was acknowledged before it began", what, must)
		}
		return
	}
	found := h.given(record)
	if rule := must.broken(found, Answer); rule != "" {
		h.found.say(rule, r.Node, r.Key, "%s gave %s; %s was acknowledged before it began", what, found, must)
	}
}

// mayBeGone reports whether nothing can be left of a record: it was deleted, or has expired, or a deletion
// may be behind it.
func (h *History) mayBeGone(key string, s stamp) bool {
	if one := h.names[s.version]; one.key == key && one.expires() && one.expiry() <= dbadapter.TimestampAt(h.shards.clock()) {
		return true
	}
	return s.deleted || slices.ContainsFunc(h.ops, func(o op) bool {
		return (o.deleted || o.expires) && o.key == key && o.state != refused &&
			(len(o.made) == 0 && o.state == unknown || slices.ContainsFunc(o.made, func(v dbadapter.Version) bool { return (stamp{version: v}).beats(stamp{version: s.version}) }))
	})
}

// Made notes a version that a write has, before a host hears of it.
func (h *History) Made(o Op, version dbadapter.Version) {
	h.ops[o].made = append(h.ops[o].made, version)
}

// If notes that a write is on a condition: that its key holds that version, or, if it is zero, no value.
func (h *History) If(o Op, on dbadapter.Version) {
	h.ops[o].conditional, h.ops[o].on = true, on
}

// Dated notes that a write has the date of its data, and not one of its own.
func (h *History) Dated(o Op) {
	h.ops[o].dated = true
}

// Wrote judges a write that is acknowledged at that time of the simulation, and notes the nodes
// that were counted as hosts that hold it.
func (h *History) Wrote(r *Request, o Op, version dbadapter.Version, hosts []int, at time.Duration) {
	w := &h.ops[o]
	w.state, w.version = acknowledged, version
	s := w.stamp()
	number := h.shards.home(w.key)
	of := h.shards.at(number)
	one := heldAt{key: w.key, s: s, at: at, hosts: hosts, voids: of.voids}
	for _, host := range hosts {
		one.disks = append(one.disks, h.disks[host])
		h.sight(host, w.key, s)
		if of.holders[host] && h.disks[host] == 0 && !h.held[host].covers(w.key, s) && !h.left(host, w.key, s) {
			h.found.say(Durable, host, w.key, "it is counted as a host that holds %s durably, and has nothing of it", s)
		}
	}
	h.helds = append(h.helds, one)
	if h.judged(r) && !w.dated && !s.beats(r.must) && !h.replacedAtOnce(w.key, s, r.must) {
		h.found.say(Later, r.Node, r.Key, "a quorum write was acknowledged as %s; %s was before it began", s, r.must)
	}
	if on := (stamp{version: w.on}); w.conditional && r.has && h.holds(r) && !of.apart && r.must.version != w.on && r.must.beats(on) &&
		!(w.on.IsZero() && h.mayBeGone(w.key, r.must)) {
		h.found.say(Condition, r.Node, r.Key, "a write on version %s was acknowledged; %s was before it began", w.on, r.must)
	}
	if r.Quorum && h.holds(r) && !of.broken() && !h.shards.latest.covers(w.key, s) {
		h.shards.latest[w.key] = s
		w.quorum, w.fails = true, of.fails
	}
}

// replacedAtOnce reports whether a node wrote a key by two calls at once, of which one has
// seen what the other one has not. The hosts that have the later record hold what the earlier
// one says, too.
func (h *History) replacedAtOnce(key string, s, must stamp) bool {
	return slices.ContainsFunc(h.ops, func(o op) bool {
		return o.key == key && slices.ContainsFunc(o.made, func(v dbadapter.Version) bool {
			return v.Writer == s.version.Writer && v.Incarnation == s.version.Incarnation && (stamp{version: v}).beats(must)
		})
	})
}

// Last judges a read when all hosts are equal: it succeeds, and is right.
func (h *History) Last(r *Request, record *dbadapter.Record, why error, held *dbadapter.Record) {
	switch {
	case why != nil:
		h.found.say(Answer, r.Node, r.Key, "all hosts are equal and in reach, and a read fails: %v", why)
	case (record == nil) != (held == nil), record != nil && !h.given(record).alike(stampOf(held)):
		h.found.say(Answer, r.Node, r.Key, "all hosts are equal, and a read gives another record than they hold")
	}
}

// stood judges that what quorum writes were acknowledged with is there in the end, or something later.
func (h *History) stood(group []*Final, have greatest) {
	for key, must := range h.shards.latest {
		s, ok := have[key]
		switch {
		case !h.shards.in(group[0], key):
		case !ok && !h.mayBeGone(key, must):
			h.found.say(Durable, -1, key, "a quorum write was acknowledged as %s; in the end nothing is there", must)
		case ok && must.broken(s, Durable) != "":
			h.found.say(must.broken(s, Durable), -1, key, "a quorum write was acknowledged as %s; in the end there is %s, which is older", must, s)
		}
	}
}

// accounted judges what became of acknowledged writes of values, where something later stands.
// That has seen them, or another write that lost has, or they are listed. Nothing that was
// written on a condition has seen more than that, and is there under one version.
func (h *History) accounted(finals []Final) {
	there, stands := map[string][]stamp{}, greatest{}
	for i := range finals {
		for key, s := range stamps(finals[i].Dump) {
			stands.raise(key, s)
		}
		for j := range finals[i].Log {
			r := &finals[i].Log[j].Record
			there[string(r.Key)] = append(there[string(r.Key)], stampOf(r))
		}
	}
	byKey := map[string][]stamp{}
	for one := range h.seen {
		byKey[one.key] = append(byKey[one.key], one.stamp)
	}
	for i := range h.ops {
		o := &h.ops[i]
		if o.conditional {
			h.sawNoMore(o, byKey[o.key])
			h.once(o, byKey[o.key])
		}
		if !o.quorum || o.deleted || o.expires || o.fails != h.shards.at(h.shards.home(o.key)).fails {
			continue
		}
		s := o.stamp()
		if by, ok := stands[o.key]; !ok || !by.beats(s) {
			continue // stood says whether that is right
		}
		if !slices.ContainsFunc(byKey[o.key], func(by stamp) bool {
			return by.beats(s) && (by.rest != untold && by.knew(s) || by.value == s.value && by.deleted == s.deleted)
		}) && !slices.ContainsFunc(there[o.key], s.alike) {
			h.found.say(Lost, o.node, o.key, "%s was acknowledged, does not stand in the end, was seen by no later write of its key, and is listed nowhere", s)
		}
	}
}

// once judges that a write on a condition was not made anew once a node held it.
func (h *History) once(o *op, all []stamp) {
	var held []dbadapter.Version
	for _, s := range all {
		if slices.Contains(o.made, s.version) && !slices.Contains(held, s.version) {
			held = append(held, s.version)
		}
	}
	if len(held) > 1 {
		h.found.say(Condition, o.node, o.key, "a write on version %s was made anew: nodes held it as %d versions", o.on, len(held))
	}
}

// sawNoMore judges that a write on a condition names as replaced nothing that is later than what it was
// compared with. Where it was compared with nothing, a deletion may have been there.
func (h *History) sawNoMore(o *op, all []stamp) {
	if o.on.IsZero() && slices.ContainsFunc(h.ops, func(p op) bool { return p.key == o.key && (p.deleted || p.expires) }) {
		return
	}
	for _, s := range all {
		if s.rest == untold || !slices.Contains(o.made, s.version) {
			continue
		}
		for i := range h.ops {
			p := &h.ops[i]
			if p == o || p.key != o.key || p.dated {
				continue
			}
			for _, v := range p.made {
				seen := stamp{version: v}
				own := v.Writer == s.version.Writer && v.Incarnation == s.version.Incarnation
				if !own && seen.beats(stamp{version: o.on}) && s.beats(seen) && s.knew(seen) {
					h.found.say(Condition, o.node, o.key, "a write on version %s names version %s as replaced", o.on, v)
				}
			}
		}
	}
}

// Scanned judges what a scan has given: each key once, and what some node has held. A scan is at level one.
// At last says that all hosts are equal: then it gives just what they hold.
func (h *History) Scanned(node int, records []dbadapter.Record, why error, held map[string]*dbadapter.Record, last bool) {
	if why != nil {
		if last {
			h.found.say(Scan, node, "", "all hosts are equal and in reach, and a scan fails: %v", why)
		}
		return
	}
	given := map[string]bool{}
	for i := range records {
		key, s := string(records[i].Key), h.given(&records[i])
		switch {
		case reserved(key):
			h.found.say(Body, node, key, "a scan gave a reserved key")
		case given[key]:
			h.found.say(Scan, node, key, "a scan gave the key twice")
		case !h.sighted(key, s):
			h.found.say(Scan, node, key, "a scan gave %s, which no node ever held", s)
		case last && (held[key] == nil || !stampOf(held[key]).alike(s)):
			h.found.say(Scan, node, key, "all hosts are equal, and a scan gave %s, which they do not hold", s)
		}
		given[key] = true
	}
	for key := range held {
		if last && !given[key] {
			h.found.say(Scan, node, key, "all hosts are equal, and a scan did not give what they hold of the key")
		}
	}
}
