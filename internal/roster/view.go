package roster

import "slices"

// seat is an admin's authority: what one grant of the role admin gave. 0 is the
// founder's, n the one of entry n−1.
type seat int

const root seat = 0

func seatOf(entry int) seat      { return seat(entry + 1) }
func (t seat) entry() int        { return int(t) - 1 }
func (v *view) at(t seat) *entry { return v.set.entries[t.entry()] }

// view answers what stands in a part of the set that holds, with each statement,
// all that it reaches. Each answer about a seat rests on answers about seats
// above it, which are in that seat's past: so the recursion ends.
type view struct {
	set    *Set
	in     bits
	whole  bool
	alive  map[authority]bool
	others map[seat]bits  // statements of other members that take the seat
	selves map[seat][]int // statements of its holder that do
	about  map[ID]*challenges
}

// authority is a statement by virtue of a seat of its author.
type authority struct {
	seat seat
	by   *entry
}

func (s *Set) view(in bits) *view {
	return &view{set: s, in: in, alive: map[authority]bool{}, others: map[seat]bits{}, selves: map[seat][]int{}, about: map[ID]*challenges{}}
}

func (s *Set) all() *view {
	v := s.view(nil)
	v.whole = true
	return v
}

func (v *view) has(i int) bool { return v.whole || v.in.has(i) }

// reaches reports whether a had seen the statement number i.
func reaches(a *entry, i int) bool { return a.past.has(i) }

// apart reports whether the entry r, number i, and s are concurrent.
func (v *view) apart(i int, r, s *entry) bool {
	return r != s && !reaches(s, i) && (s.number < 0 || !reaches(r, s.number))
}

// stands reports whether a statement of the view counts.
func (v *view) stands(i int) bool { return v.couldStand(v.set.entries[i]) }

// couldStand is stands for a statement that need not be in the set.
func (v *view) couldStand(e *entry) bool {
	switch {
	case e.Kind == Found:
		return true
	case e.ofItself() && !v.counts(e):
		return false
	case e.ofItself() && len(e.seats) == 0:
		return slices.ContainsFunc(e.grants, func(g int) bool { return v.stands(g) && len(v.removedApart(e, g)) == 0 })
	}
	return slices.ContainsFunc(e.seats, func(t seat) bool { return v.live(t, e) })
}

// removedApart are the statements by which other members have ended the author's
// grant apart from this one, which the author makes of itself alone.
func (v *view) removedApart(e *entry, g int) (removals []int) {
	for _, i := range v.set.subjects[e.Author].enders {
		r := v.set.entries[i]
		ends := r.Kind == Remove || r.Kind == Expire && reaches(r, g) && v.set.entries[g].expiredBy(r)
		if ends && r.Author != e.Author && v.has(i) && v.apart(i, r, e) && v.stands(i) {
			removals = append(removals, i)
		}
	}
	return removals
}

// counts reports whether a statement that a member makes of itself alone is among
// the lowest hashes of that kind. It looks at few of them where the view is the whole
// set: a former member can have made MaxPerAuthor.
func (v *view) counts(e *entry) bool {
	lower := 0
	for _, i := range v.set.own[e.Author] {
		if byHash(v.set.entries[i], e) >= 0 {
			break
		}
		if v.has(i) {
			if lower++; lower == maxOwn {
				return false
			}
		}
	}
	return true
}

// live reports whether a seat of its author gives a statement authority. The seat
// itself stands then, and no standing statement apart from this one takes it.
func (v *view) live(t seat, e *entry) bool {
	key := authority{t, e}
	answer, known := v.alive[key]
	if !known {
		answer = (t == root || v.stands(t.entry())) && !v.taken(t, e)
		v.alive[key] = answer
	}
	return answer
}

func (v *view) taken(t seat, e *entry) bool {
	concurrent := func(i int) bool { return v.apart(i, v.set.entries[i], e) }
	for i := range v.takers(t).all() {
		if concurrent(i) {
			return true
		}
	}
	// What an admin says of itself, apart, does not void one another: two steps down
	// both stand, and the lower role counts.
	if e.Author == e.Subject {
		return false
	}
	return slices.ContainsFunc(v.ownTakers(t), concurrent)
}

// holder is the member whose seat it is.
func (v *view) holder(t seat) ID {
	if t == root {
		return v.set.cfg.Creator
	}
	return v.at(t).Subject
}

// above are the seats above t.
func (v *view) above(t seat) bits {
	if t == root {
		return nil
	}
	return v.at(t).above
}

// couldTake reports whether the entry r, by its kind and place, is one that takes the
// seat if its author may. It is a removal, or a grant of a lower role, that the seat is
// not later than, or an expiry that had seen the seat and its end.
func (v *view) couldTake(i int, t seat) bool {
	r := v.set.entries[i]
	if !v.has(i) || t != root && reaches(v.at(t), i) {
		return false
	}
	return r.Kind != Expire || t != root && reaches(r, t.entry()) && v.at(t).expiredBy(r)
}

// expiredBy reports whether a grant had expired when r was made.
func (e *entry) expiredBy(r *entry) bool { return e.Expires != 0 && e.Expires <= r.At }

// over reports whether a statement has authority by a seat above t.
func (v *view) over(r *entry, t seat) bool {
	above := v.above(t)
	return slices.ContainsFunc(r.seats, func(u seat) bool { return above.has(int(u)) && v.live(u, r) })
}

// replaces reports whether a grant of the role admin stands in the place of an
// earlier seat.
func (v *view) replaces(i int, t seat) bool {
	g := v.set.entries[i]
	return t != root && v.has(i) && reaches(g, t.entry()) && v.over(g, t)
}

// replacers are the later grants of the role admin that stand in a seat's place.
func (v *view) replacers(t seat) (replacers []int) {
	for _, i := range v.set.subjects[v.holder(t)].admin {
		if v.replaces(i, t) {
			replacers = append(replacers, i)
		}
	}
	return replacers
}

// seats are the seats that a member has in the view: the founder's, then by hash.
func (v *view) seats(id ID) (seats []seat) {
	var admin []int
	if h := v.set.subjects[id]; h != nil {
		admin = slices.DeleteFunc(slices.Clone(h.admin), func(i int) bool { return !v.has(i) })
		slices.Reverse(admin) // a later grant is the likelier to replace a seat
	}
	free := func(t seat) bool {
		replaced := func(i int) bool { return v.replaces(i, t) }
		return !v.takers(t).meets(v.takers(t)) && len(v.ownTakers(t)) == 0 && !slices.ContainsFunc(admin, replaced)
	}
	if id == v.set.cfg.Creator && slices.ContainsFunc(v.set.founds, v.has) && free(root) {
		seats = append(seats, root)
	}
	inOrder := slices.SortedFunc(slices.Values(admin), func(a, b int) int { return byHash(v.set.entries[a], v.set.entries[b]) })
	for _, i := range inOrder {
		if len(seats) == maxSeats {
			break
		}
		if v.stands(i) && free(seatOf(i)) {
			seats = append(seats, seatOf(i))
		}
	}
	return seats
}

// role is what a member may do in the view, and by which grant (−1: it is the
// founder). 0: it is no member.
func (v *view) role(id ID) (Role, int) {
	if seats := v.seats(id); len(seats) > 0 {
		best := seats[0]
		for _, t := range seats[1:] { // sorted: the lowest hash of those that hold longest
			if best != root && later(v.at(t).Expires, v.at(best).Expires) {
				best = t
			}
		}
		return RoleAdmin, best.entry()
	}
	best := -1
	for _, g := range v.plain(id) {
		e := v.set.entries[g]
		if best < 0 || e.Role < v.set.entries[best].Role || e.Role == v.set.entries[best].Role && byHash(e, v.set.entries[best]) < 0 {
			best = g
		}
	}
	if best < 0 {
		return 0, 0
	}
	return v.set.entries[best].Role, best
}

// lapsed reports whether a lapse of the member stands that it has not returned
// from. A return ends the lapses that it had seen.
func (v *view) lapsed(id ID) bool {
	h := v.set.subjects[id]
	if h == nil {
		return false
	}
	return slices.ContainsFunc(h.lapses, func(l int) bool {
		return v.has(l) && v.stands(l) && !slices.ContainsFunc(h.returns, func(r int) bool {
			return v.has(r) && reaches(v.set.entries[r], l) && v.stands(r)
		})
	})
}
