package roster

import (
	"cmp"
	"math"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// What ends the grants of one member, for all of them at once. One admin can give a
// member thousands of grants that have not seen one another. To ask for each pair
// whether one ends the other takes minutes then. Sorted, and by sets of statements, n
// grants cost n log n operations on sets, each of 1,024 words at most (MaxStatements
// bits).

// ending are the standing statements about a member that can end its grants.
type ending struct {
	removes bits
	reads   bits  // grants of the role read
	grants  []int // of all roles
	expires []int
}

func (v *view) ending(h *history) ending {
	var e ending
	var removes, reads []int
	for _, i := range h.enders {
		if !v.has(i) || !v.stands(i) {
			continue
		}
		switch s := v.set.entries[i]; s.Kind {
		case Remove:
			removes = append(removes, i)
		case Expire:
			e.expires = append(e.expires, i)
		default:
			e.grants = append(e.grants, i)
			if s.Role == RoleRead {
				reads = append(reads, i)
			}
		}
	}
	for _, i := range h.admin {
		if v.has(i) && v.stands(i) {
			e.grants = append(e.grants, i)
		}
	}
	e.removes, e.reads = bitsOf(removes), bitsOf(reads)
	return e
}

// plain are the grants of roles below admin that a member has in the view. Each admin
// may end one. A removal ends what is not later than it. A grant ends what it had seen
// and what, concurrently with it, gave more. An expiry ends what it had seen expired.
func (v *view) plain(id ID) (grants []int) {
	h := v.set.subjects[id]
	if h == nil || len(h.plain) == 0 {
		return nil
	}
	e := v.ending(h)
	replaced, expired := v.reached(e.grants), v.expired(h, &e)
	for _, g := range h.plain {
		if !v.has(g) || !v.stands(g) || replaced.has(g) || expired.has(g) {
			continue
		}
		grant := v.set.entries[g]
		// Of the roles below admin only read is lower than another.
		if e.removes.within(grant.past) && (grant.Role == RoleRead || e.reads.within(grant.past)) {
			grants = append(grants, g)
		}
	}
	return grants
}

// reached is what these statements had seen, all together.
func (v *view) reached(statements []int) (seen bits) {
	for _, i := range slices.Backward(slices.Sorted(slices.Values(statements))) {
		if !seen.has(i) { // otherwise a later one has seen what it had seen
			seen = seen.union(v.set.entries[i].past)
		}
	}
	return seen
}

// expired are the grants that an expiry had seen, and their end. The expiries that
// are late enough for a grant are so for each grant that ended earlier.
func (v *view) expired(h *history, e *ending) bits {
	if len(e.expires) == 0 {
		return nil
	}
	var ended []int
	for _, g := range h.plain {
		if v.set.entries[g].Expires != 0 {
			ended = append(ended, g)
		}
	}
	entries := v.set.entries
	slices.SortFunc(ended, func(a, b int) int { return cmp.Compare(entries[b].Expires, entries[a].Expires) })
	latest := slices.SortedFunc(slices.Values(e.expires), func(a, b int) int { return cmp.Compare(entries[b].At, entries[a].At) })
	var seen bits
	var found []int
	for _, g := range ended {
		for len(latest) > 0 && entries[g].expiredBy(entries[latest[0]]) {
			seen, latest = seen.union(entries[latest[0]].past), latest[1:]
		}
		if seen.has(g) {
			found = append(found, g)
		}
	}
	return bitsOf(found)
}

// lastInstants are the last times that the standing grants of the role write cover.
// They are their expiries, or the times of the earliest statements that end them. (A
// statement that writes an expiry down is not earlier than the expiry.)
func (v *view) lastInstants(h *history) map[int]dbadapter.Timestamp {
	entries := v.set.entries
	last := map[int]dbadapter.Timestamp{}
	var writes []int
	for _, g := range h.plain {
		if entries[g].Role == RoleWrite && v.has(g) && v.stands(g) {
			writes = append(writes, g)
			last[g] = entries[g].lastInstant()
		}
	}
	if len(writes) == 0 {
		return nil
	}
	byTime := func(a, b int) int { return cmp.Compare(entries[a].At, entries[b].At) }
	e := v.ending(h)
	// A later grant ends those that it had seen.
	open := bitsOf(writes)
	for _, i := range slices.SortedFunc(slices.Values(e.grants), byTime) {
		for _, g := range slices.Collect(open.both(entries[i].past)) { // drop changes open
			last[g] = min(last[g], entries[i].At)
			open.drop(g)
		}
	}
	// A removal, and a grant of the role read, ends those that had not seen it.
	cuts := slices.SortedFunc(e.removes.union(e.reads).all(), byTime)
	all := bitsOf(cuts)
	v.cut(slices.DeleteFunc(writes, func(g int) bool { return all.within(entries[g].past) }), cuts, last)
	return last
}

// cut bounds grants by the first of these statements, sorted by time, that each has
// not seen. Each has not seen one at least.
func (v *view) cut(grants, cuts []int, last map[int]dbadapter.Timestamp) {
	if len(grants) == 0 {
		return
	}
	if len(cuts) == 1 {
		for _, g := range grants {
			last[g] = min(last[g], v.set.entries[cuts[0]].At)
		}
		return
	}
	early := bitsOf(cuts[:len(cuts)/2])
	var now, later []int
	for _, g := range grants {
		if early.within(v.set.entries[g].past) {
			later = append(later, g)
		} else {
			now = append(now, g)
		}
	}
	v.cut(now, cuts[:len(cuts)/2], last)
	v.cut(later, cuts[len(cuts)/2:], last)
}

// span is a time in which a member's versions count, both ends included.
type span struct{ from, to dbadapter.Timestamp }

// spans are the times in which a node's versions count. There is one for each grant of
// the role write or admin that stands, from its start to its end.
func (v *view) spans(id ID) (spans []span) {
	add := func(from, to dbadapter.Timestamp) {
		if from <= to {
			spans = append(spans, span{from, to})
		}
	}
	if id == v.set.cfg.Creator && len(v.set.founds) > 0 {
		add(0, v.first(math.MaxUint64, v.takers(root), v.ownTakers(root)))
	}
	h := v.set.subjects[id]
	if h == nil {
		return spans
	}
	losses := v.losses(h)
	last := v.lastInstants(h)
	for _, g := range h.plain {
		if to, stands := last[g]; stands {
			add(v.start(g, losses), to)
		}
	}
	for _, g := range h.admin {
		if t := seatOf(g); v.stands(g) {
			add(v.start(g, losses), v.first(v.set.entries[g].lastInstant(), v.takers(t), v.ownTakers(t), v.replacers(t)))
		}
	}
	return spans
}

// lastInstant is the last time that a grant covers.
func (e *entry) lastInstant() dbadapter.Timestamp {
	if e.Expires == 0 {
		return math.MaxUint64
	}
	return e.Expires
}

// first is the earliest time among these statements, or to.
func (v *view) first(to dbadapter.Timestamp, takers bits, by ...[]int) dbadapter.Timestamp {
	for i := range takers.all() {
		to = min(to, v.set.entries[i].At)
	}
	for _, list := range by {
		for _, i := range list {
			to = min(to, v.set.entries[i].At)
		}
	}
	return to
}

// start is the time from which a grant's versions count. It is what the grant says, or
// 0, or the grant's own time if it had seen the member lose the right to write.
func (v *view) start(g int, losses bits) dbadapter.Timestamp {
	e := v.set.entries[g]
	switch {
	case e.Since != 0:
		return e.Since
	case losses.meets(e.past):
		return e.At
	}
	return 0
}

// losses are the standing statements by which a member lost the right to write. They
// are removals, expiries, and grants of the role read that had seen it have the right.
func (v *view) losses(h *history) bits {
	var wrote, losses []int
	for _, g := range slices.Concat(h.plain, h.admin) {
		if v.set.entries[g].Role >= RoleWrite && v.stands(g) {
			wrote = append(wrote, g)
		}
	}
	right := bitsOf(wrote)
	for _, i := range h.enders {
		if e := v.set.entries[i]; (e.Kind != Grant || e.Role == RoleRead && right.meets(e.past)) && v.stands(i) {
			losses = append(losses, i)
		}
	}
	return bitsOf(losses)
}
