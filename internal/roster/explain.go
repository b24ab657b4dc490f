package roster

import "slices"

// Explain returns the statements that show a node why it is not a member. For each
// grant about it there is one that ended it, or that took the authority of its author,
// or the grant itself, which has expired, where it is in force by the list. Then comes
// what these had seen, the latest first, until there are limit. They come in an order
// in which each follows those of them that it names.
//
// One statement is not enough: a node may believe in two grants, of which one was taken
// back and the other is void. The node that knows all that had been seen when it was
// last a member computes from them the list that this set has of it. They tell a former
// member nothing that was stated after what ended its roles.
func (s *Set) Explain(id ID, limit int) [][]byte {
	shown := s.resolve().shown
	key := request{id, limit}
	proof, known := shown[key]
	if !known {
		proof = s.explain(id, limit)
		shown[key] = proof
	}
	return proof
}

// maxExplained is how many grants about one node are explained, the latest: it bounds
// the work where an admin has made thousands.
const maxExplained = 1_024

// latest are the last grants that arrived, maxExplained at most.
func (h *history) latest() []int {
	grants := slices.Sorted(slices.Values(slices.Concat(h.plain, h.admin)))
	return grants[max(0, len(grants)-maxExplained):]
}

// request is what Explain was asked for: a former member may ask again and again.
type request struct {
	id    ID
	limit int
}

func (s *Set) explain(id ID, limit int) [][]byte {
	h := s.subjects[id]
	if h == nil {
		return nil
	}
	v := s.all()
	x := &explanation{view: v, limit: limit, seen: map[int]bool{}}
	if id == s.cfg.Creator {
		x.earliest(v.allTakers(root))
	}
	for _, g := range h.latest() {
		if v.stands(g) {
			x.ended(h, g)
		} else {
			x.void(g)
		}
	}
	return s.proof(x.why, limit)
}

// explanation gathers statements.
type explanation struct {
	view  *view
	why   []int
	limit int
	seen  map[int]bool // whose grounds are in it
}

// earliest adds one of the statements, unless one of them has been added before.
func (x *explanation) earliest(found []int) {
	if len(found) == 0 || len(x.why) >= x.limit || slices.ContainsFunc(found, func(i int) bool { return slices.Contains(x.why, i) }) {
		return
	}
	entries := x.view.set.entries
	x.add(slices.MinFunc(found, func(i, j int) int { return sooner(entries[i], entries[j]) }))
}

// add adds a statement, and why it counts.
func (x *explanation) add(i int) {
	x.why = append(x.why, i)
	x.stands(i)
}

// stands adds why a statement counts: where the node may know of one that could have
// taken its author's authority, what took that one's.
func (x *explanation) stands(i int) {
	if x.seen[i] {
		return
	}
	x.seen[i] = true
	v := x.view
	e := v.set.entries[i]
	for _, t := range e.seats {
		if !v.live(t, e) {
			continue
		}
		if h := v.set.subjects[v.holder(t)]; h != nil {
			for _, j := range h.enders {
				if v.couldTake(j, t) && v.apart(j, v.set.entries[j], e) {
					x.unable(v.set.entries[j], t)
				}
			}
		}
		if t != root {
			x.stands(t.entry())
		}
	}
	for _, g := range e.grants { // of what a member without seats says of itself alone
		if v.stands(g) && len(v.removedApart(e, g)) == 0 {
			x.stands(g)
		}
	}
}

// unable adds why a statement does not take a seat.
func (x *explanation) unable(r *entry, t seat) {
	for _, u := range r.seats {
		if u == t || x.view.above(t).has(int(u)) {
			x.dead(u, r)
		}
	}
}

// dead adds why a seat gives a statement no authority, where it does not.
func (x *explanation) dead(t seat, e *entry) {
	v := x.view
	switch {
	case v.live(t, e):
	case t != root && !v.stands(t.entry()):
		x.void(t.entry()) // earlier than e, so that this ends
	default:
		x.earliest(v.takersApart(t, e))
	}
}

// ended adds what ended a grant that stands, or the grant if it is in force.
func (x *explanation) ended(h *history, g int) {
	v := x.view
	var found []int
	if v.set.entries[g].Role == RoleAdmin {
		t := seatOf(g)
		found = append(v.allTakers(t), v.replacers(t)...)
	} else {
		for _, i := range slices.Concat(h.enders, h.admin) {
			if v.endsByPair(i, g) {
				found = append(found, i)
			}
		}
	}
	if len(found) > 0 {
		x.earliest(found)
	} else if len(x.why) < x.limit {
		x.add(g)
	}
}

// endsByPair reports whether a statement ends a grant of a role below admin. A removal
// ends what is not later than it. A grant ends what it had seen and what, concurrently
// with it, gave more. An expiry ends what it had seen expired.
func (v *view) endsByPair(i, g int) bool {
	if i == g || !v.has(i) {
		return false
	}
	c, grant := v.set.entries[i], v.set.entries[g]
	switch before := reaches(c, g); c.Kind {
	case Remove:
		return !reaches(grant, i) && v.stands(i)
	case Grant:
		return (before || c.Role < grant.Role && !reaches(grant, i)) && v.stands(i)
	case Expire:
		return before && grant.expiredBy(c) && v.stands(i)
	}
	return false
}

// void adds, for each seat of a void statement's author, what took it.
func (x *explanation) void(i int) {
	if x.seen[i] {
		return
	}
	x.seen[i] = true // it may have come here from itself
	v := x.view
	e := v.set.entries[i]
	for _, t := range e.seats {
		x.dead(t, e)
	}
	for _, g := range e.grants { // of what a member without seats says of itself alone
		if !v.stands(g) {
			x.void(g)
		} else {
			x.earliest(v.removedApart(e, g))
		}
	}
}

// proof is the values of statements, with what they had seen, the latest first.
func (s *Set) proof(why []int, limit int) [][]byte {
	var past bits
	for _, i := range why {
		past = past.union(s.entries[i].past)
	}
	chosen := slices.Clone(why)
	for i := len(s.entries) - 1; i >= 0 && len(chosen) < limit; i-- {
		if past.has(i) && !slices.Contains(why, i) {
			chosen = append(chosen, i)
		}
	}
	slices.Sort(chosen) // an entry comes after those that it names
	values := make([][]byte, len(chosen))
	for n, i := range chosen {
		values[n] = s.entries[i].value
	}
	return values
}
