package check

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Door is what a node goes by when another one offers it a record.
type Door struct {
	// Holds is the record that it holds under the key; nil for none. Keys is how many records
	// its index holds, Alive how many of these are not tombstones.
	Holds       *dbadapter.Record
	Keys, Alive int
	// Clock is what its clock says, and Skew how far ahead of it a version may be.
	Clock time.Time
	Skew  time.Duration
	// Floor is up to when it has collected, unless it recovers; Theirs is the floor that the
	// other one has told it, TheyRecover that it has told that it recovers.
	Floor, Theirs            dbadapter.Timestamp
	Recovers, TheyRecover    bool
	Unsigned                 bool
	MayWrite, TheirsMayWrite bool // by its list
	// Allows reports whether the writer of a record had the right to write it, by its list.
	Allows func(*dbadapter.Record) bool
}

// firstTime is the least that a version's clock may say.
var firstTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// reasons are all for which the node declines the record. It is the reference for the
// order of examinations in the node: which of several reasons is told is free.
func (d *Door) reasons(r *dbadapter.Record) (why []wire.Reason) {
	if t := r.Version.Clock.Time(); t.Before(firstTime) || t.After(d.Clock.Add(d.Skew)) {
		why = append(why, wire.ReasonClock)
	}
	if d.Unsigned && !d.TheirsMayWrite || !d.Unsigned && !d.Allows(r) {
		why = append(why, wire.ReasonWriter)
	}
	follows := !d.MayWrite && d.TheirsMayWrite && !d.TheyRecover && r.Version.Clock <= d.Theirs
	if d.Holds == nil && !d.Recovers && r.Version.Clock <= d.Floor && !follows {
		why = append(why, wire.ReasonFloor)
	}
	if d.Holds == nil && d.Keys >= 256 || !r.Deleted && (d.Holds == nil || d.Holds.Deleted) && d.Alive >= 64 {
		why = append(why, wire.ReasonFull)
	}
	return why
}

// Told is the answer of a node to a question about a key, and what was so when it
// answered.
type Told struct {
	// Node answers, Asker has asked.
	Node, Asker int
	Key         string
	// Asked is the asker's record without its value, and Said that of the node; of a zero
	// version for nothing.
	Asked, Said dbadapter.Record
	Declines    wire.Reason
	Door        Door // of the node
}

// Told judges an answer: the rule why.
func (h *History) Told(a *Told) {
	say := func(format string, args ...any) {
		h.found.say(Why, a.Node, a.Key, "it tells node %d %s", a.Asker, fmt.Sprintf(format, args...))
	}
	has := dbadapter.Record{}
	if a.Door.Holds != nil {
		has = *a.Door.Holds
	}
	if !sameHead(&a.Said, &has) {
		say("that it holds %s; it holds %s", headOf(&a.Said), headOf(&has))
	}
	if !a.Said.Version.IsZero() { // it says what is durable, so that this survives a crash
		if known, ok := h.held[a.Node][a.Key]; !ok || known.version.Compare(a.Said.Version) < 0 {
			say("that it holds %s, which is not known to be durable there", headOf(&a.Said))
		}
	}
	var why []wire.Reason
	if v := a.Asked.Version; !v.IsZero() && has.Version.Compare(v) < 0 {
		why = a.Door.reasons(&a.Asked)
	}
	if !reasoned(a.Declines, why) {
		say("the reason %q for which it declines %s; those that are so are %v", a.Declines, headOf(&a.Asked), why)
	}
}

func reasoned(told wire.Reason, why []wire.Reason) bool {
	return told == 0 && len(why) == 0 || slices.Contains(why, told)
}

func sameHead(a, b *dbadapter.Record) bool {
	return a.Version == b.Version && a.Deleted == b.Deleted && a.Expires == b.Expires && slices.Equal(a.Replaces, b.Replaces)
}

func headOf(r *dbadapter.Record) string {
	if r.Version.IsZero() {
		return "nothing"
	}
	return recordText(r)
}

// Explained is what a node makes of the answer to a question about a key.
type Explained struct {
	Node, Peer int
	Key        string
	// Standing is how the key stands, and Causes why, as the node says.
	Standing string
	Causes   []Cause
	// Here is the record of Node when it asked, There that of Peer when it answered; nil for
	// nothing.
	Here, There *dbadapter.Record
	// Declined is why Peer declines the record of Node, as it has told.
	Declined wire.Reason
	// PeerFloor is up to when Peer has collected.
	PeerFloor dbadapter.Timestamp
	// Door is that of Node when it had the answer; its clock said Door.Clock then.
	Door Door
	// Lapsed: one of the two has lapsed by Node's list. ListsDiffer: the two had different
	// lists when the answer arrived, and was given.
	Lapsed, ListsDiffer bool
}

// Cause is why a key stands as it does; Rule is of a record that is declined.
type Cause struct {
	Kind string
	Rule wire.Reason
}

// Explained judges an explanation: the rule why.
func (h *History) Explained(e *Explained) {
	say := func(format string, args ...any) {
		h.found.say(Why, e.Node, e.Key, "of node %d it says %s", e.Peer, fmt.Sprintf(format, args...))
	}
	standing := e.standing()
	if e.Standing != standing {
		say("%q; it is %q", e.Standing, standing)
		return
	}
	want := map[string][]wire.Reason{} // by cause; the rules of which one is to be named
	add := func(so bool, kind string, rules ...wire.Reason) {
		if so {
			want[kind] = rules
		}
	}
	add(e.Here != nil && e.Here.Expires != 0 && !e.Here.Expires.Time().After(e.Door.Clock), "expired")
	add(e.Lapsed, "lapsed")
	add(e.ListsDiffer, "lists differ")
	if standing != "same" && standing != "held by neither" {
		there := e.Declined
		add(there != 0, kindOf(there, e.Here, e.PeerFloor)+" there", there)
		var here []wire.Reason
		greater, less := e.Here, e.There
		if e.Here == nil || e.There != nil && e.Here.Version.Compare(e.There.Version) < 0 {
			greater, less = less, greater
			here = e.Door.reasons(e.There)
		}
		for _, rule := range here {
			kind := kindOf(rule, e.There, e.Door.Floor) + " here"
			want[kind] = append(want[kind], rule)
		}
		add(less != nil && less.Version != greater.Version && !knew(greater, less.Version), "conflict")
		if there == 0 && len(here) == 0 {
			kind, rules := e.due()
			add(true, kind, rules...)
		}
	}
	told := map[string]bool{}
	for _, c := range e.Causes {
		rules, ok := want[c.Kind]
		if told[c.Kind] = true; !ok || !reasoned(c.Rule, rules) {
			say("%q, for the reason %q; what is so is %v", c.Kind, c.Rule, want)
		}
	}
	// Of several rules by which this node declines the record, one is named.
	here := told["declined here"] || told["collected here"]
	for kind := range want {
		if !told[kind] && !(here && (kind == "declined here" || kind == "collected here")) {
			say("nothing of %q, which is so", kind)
		}
	}
}

// due is the cause of a record that no rule keeps out. Either no sync has carried it yet, or
// one of the two has declined it before, by some rule, and the other one rests it. Which of
// the two it is only a sync shows; a test of internal/node holds the cause against one.
func (e *Explained) due() (kind string, rules []wire.Reason) {
	const before = "declined before"
	for _, c := range e.Causes {
		if c.Kind == before && c.Rule != 0 {
			return before, []wire.Reason{c.Rule}
		}
	}
	return "not synced yet", nil
}

// kindOf is what a node has done that declines a record: collected all of its time, or not.
func kindOf(rule wire.Reason, r *dbadapter.Record, floor dbadapter.Timestamp) string {
	if rule == wire.ReasonFloor && Collectable(r, ^dbadapter.Timestamp(0)) && max(r.Version.Clock, r.Expires) <= floor {
		return "collected"
	}
	return "declined"
}

// standing is how the two records stand.
func (e *Explained) standing() string {
	here, there := e.Here, e.There
	switch {
	case here == nil && there == nil:
		return "held by neither"
	case there == nil:
		return "missing there"
	case here == nil:
		return "missing here"
	case stampOf(here) == stampOf(there) && bytes.Equal(here.Value, there.Value):
		return "same"
	case here.Version == there.Version:
		return "two contents"
	case stampOf(here).beats(stampOf(there)):
		return "newer here"
	}
	return "newer there"
}

// Await is a wait that has begun.
type Await int

// await is what is known of it.
type await struct {
	node     int
	key      string // empty: of everything
	of       []int
	version  dbadapter.Version
	held     greatest    // by the node, when the wait began
	replaced map[int]int // how often the disks had been replaced
	heard    map[int]bool
}

// Awaiting notes that a node begins to wait until some of these members hold what it
// holds. If key is not empty, it waits for a version of that key.
func (h *History) Awaiting(node int, of []int, key string, version dbadapter.Version, held []dbadapter.Record) Await {
	a := await{node: node, key: key, of: of, version: version, held: stamps(held), replaced: map[int]int{}, heard: map[int]bool{}}
	for _, member := range append([]int{node}, of...) {
		a.replaced[member] = h.disks[member]
	}
	h.awaits = append(h.awaits, a)
	return Await(len(h.awaits) - 1)
}

// Confirmed notes that the wait has found that a member holds it: the rule wait. floor is
// up to when the member has collected.
func (h *History) Confirmed(w Await, member int, floor dbadapter.Timestamp) {
	a := &h.awaits[w]
	a.heard[member] = true
	if h.disks[member] != a.replaced[member] || h.disks[a.node] != a.replaced[a.node] {
		return // its disk was replaced, or its versions restamped, since it said so
	}
	for key, must := range a.held {
		if a.key != "" && key != a.key {
			continue
		}
		if a.key != "" && must.version != a.version {
			must = stamp{version: a.version, content: must.content, rest: untold}
		}
		has, ok := h.held[member][key]
		gone, was := h.gone.at[member][key]
		switch {
		case ok && has.version.Compare(must.version) >= 0 && !(a.key == "" && must.beats(has)):
		case was && gone.version.Compare(must.version) >= 0:
		case h.left(a.node, key, must), h.left(member, key, must):
			// Neither holds it any more.
		case must.version.Clock <= floor && (must.deleted || must.expires()):
			// It collects what comes late.
		default:
			h.found.say(Wait, a.node, key, "its wait has found that node %d holds %s; that holds %v", member, must.version, has)
		}
	}
}

// Unheard notes that nothing hinders a wait any more since long ago, and that all nodes are
// equal: each of these members must have confirmed.
func (h *History) Unheard(w Await, members []int) {
	a := &h.awaits[w]
	for _, member := range members {
		if slices.Contains(a.of, member) && !a.heard[member] {
			h.found.say(Wait, a.node, a.key, "all nodes are equal and in reach, and its wait has not found that node %d holds what it holds", member)
		}
	}
}
