package roster

import "slices"

// link is a seat as a list knows it, of those that the members' roles come from.
type link struct {
	holder ID
	by     []seat // of the grant's author, for the grant
	above  bits
}

// link notes what the roles of the members come from: a grant, by seats.
func (l *List) link(v *view) {
	var known bits
	for _, m := range l.members {
		from := l.seats[m.ID]
		if len(from) == 0 {
			from = v.set.entries[v.set.byHash[m.Grant]].seats
			l.from[m.ID] = from
		}
		for _, t := range from {
			known = known.union(v.above(t)).with(int(t))
		}
	}
	for i := range known.all() {
		at := link{holder: v.holder(seat(i)), above: v.above(seat(i))}
		if seat(i) != root {
			at.by = v.at(seat(i)).seats
		}
		l.links[seat(i)] = at
	}
}

// Ended is for statements that a set cannot take, since it lacks what they name. It
// returns the one that ends a member's role, if all of them count, or nil. by has shown
// them.
//
// Each may end what its author may, as far as the list tells. Above an admin are only
// members that it knows as such. Any admin ends another member's role. Here it is enough
// that an admin shows the statement, since the list may not have heard of the author.
func (l *List) Ended(id ID, shown []*Statement, by ID) *Statement {
	e := endedSeats{list: l, shown: shown, by: map[seat]*Statement{}}
	end, demoted := e.all(l.seats[id]), false
	if end != nil {
		demoted = end.Kind == Grant && end.Subject == id // to a role that is to be ended, too
	}
	if len(l.seats[id]) > 0 && !demoted {
		return end
	}
	// A node that has stepped down and does not remember it is a copy from before, and
	// may know no admin of now.
	heard := demoted && end.Author == id || l.Has(by, RoleAdmin)
	for _, s := range shown {
		if s.Subject == id && s.Kind != Grant && s.takes() && (heard || s.Author == id || l.Has(s.Author, RoleAdmin)) {
			return s
		}
	}
	if demoted {
		return nil
	}
	return e.all(l.from[id])
}

// takes reports whether a statement can take a seat, by its kind.
func (s *Statement) takes() bool {
	return s.Kind == Remove || s.Kind == Expire || s.Kind == Grant && s.Role < RoleAdmin
}

// endedSeats finds which of the statements shown takes each seat.
type endedSeats struct {
	list  *List
	shown []*Statement
	by    map[seat]*Statement // what was found; a seat can be asked for in many ways
}

// all is a statement by which the last of these seats is taken, a demotion rather than
// others. It is nil where a seat is left, and of no seats.
func (e *endedSeats) all(seats []seat) (end *Statement) {
	for _, t := range seats {
		s := e.seat(t)
		if s == nil {
			return nil
		}
		if end == nil || s.Kind == Grant {
			end = s
		}
	}
	return end
}

// seat is a statement that takes the seat, or the authority by which it was given.
func (e *endedSeats) seat(t seat) *Statement {
	found, known := e.by[t]
	if !known {
		at := e.list.links[t]
		if i := slices.IndexFunc(e.shown, func(s *Statement) bool { return s.Kind != Grant && e.mayTake(s, at) }); i >= 0 {
			found = e.shown[i]
		} else if i := slices.IndexFunc(e.shown, func(s *Statement) bool { return e.mayTake(s, at) }); i >= 0 {
			found = e.shown[i]
		} else {
			found = e.all(at.by) // these are in its past, so that this ends
		}
		e.by[t] = found
	}
	return found
}

// mayTake reports whether a statement takes a seat if it counts: it is the holder's, or
// an admin's that was given a seat above.
func (e *endedSeats) mayTake(s *Statement, t link) bool {
	if !s.takes() || s.Subject != t.holder {
		return false
	}
	if s.Author == t.holder || !e.list.Has(s.Author, RoleAdmin) {
		return s.Author == t.holder
	}
	for u := range t.above.all() {
		if e.list.links[seat(u)].holder == s.Author {
			return true
		}
	}
	return false
}
