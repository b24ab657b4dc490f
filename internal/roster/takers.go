package roster

import "slices"

// What takes the seats of one member. An admin can give a member thousands of seats,
// and take each by thousands of statements. A list of these for each seat would take
// gigabytes. So they are sets, which seats share where they agree, and which are made
// of one set for each seat by which they were made.

// challenges are the statements in a view that can end a role of one member, by the
// seats of their authors.
type challenges struct {
	others  map[seat][]int // of other members
	expires []int          // of these, the expiries
	own     map[seat][]int // of the member
	strong  map[seat]bits  // of others, those that the seat gives authority
}

// challenges are those of a member.
func (v *view) challenges(id ID) *challenges {
	c := v.about[id]
	if c != nil {
		return c
	}
	c = &challenges{others: map[seat][]int{}, own: map[seat][]int{}, strong: map[seat]bits{}}
	v.about[id] = c
	h := v.set.subjects[id]
	if h == nil {
		return c
	}
	for _, i := range h.enders {
		r := v.set.entries[i]
		if !v.has(i) {
			continue
		}
		by := c.others
		switch {
		case r.Author == id:
			by = c.own
		case r.Kind == Expire: // each ends what it had seen expired alone
			c.expires = append(c.expires, i)
			continue
		}
		for _, u := range r.seats {
			by[u] = append(by[u], i)
		}
	}
	return c
}

// strongBy are the challenges of other members that a seat gives authority. It is asked
// for seats above one of the member's, so that the definition ends.
func (v *view) strongBy(c *challenges, u seat) bits {
	strong, known := c.strong[u]
	if !known {
		var live []int
		for _, i := range c.others[u] {
			if v.live(u, v.set.entries[i]) {
				live = append(live, i)
			}
		}
		strong = bitsOf(live)
		c.strong[u] = strong
	}
	return strong
}

// takers are the statements of other members that take a seat from its holder.
func (v *view) takers(t seat) bits {
	takers, known := v.others[t]
	if known {
		return takers
	}
	c, above := v.challenges(v.holder(t)), v.above(t)
	for u := range c.others {
		if above.has(int(u)) {
			takers = takers.union(v.strongBy(c, u))
		}
	}
	if t != root {
		takers = takers.minus(v.at(t).past)
	}
	var ended []int
	for _, i := range c.expires {
		if v.couldTake(i, t) && v.over(v.set.entries[i], t) {
			ended = append(ended, i)
		}
	}
	takers = takers.union(bitsOf(ended))
	v.others[t] = takers
	return takers
}

// ownTakers are the statements by which the holder gives a seat up: it leaves, or
// steps down from seats that it had seen.
func (v *view) ownTakers(t seat) []int {
	takers, known := v.selves[t]
	if known {
		return takers
	}
	for _, i := range v.challenges(v.holder(t)).own[t] {
		r := v.set.entries[i]
		if v.couldTake(i, t) && v.live(t, r) && (r.Kind != Remove || v.counts(r)) {
			takers = append(takers, i)
		}
	}
	v.selves[t] = takers
	return takers
}

// allTakers are both.
func (v *view) allTakers(t seat) []int {
	return slices.Concat(slices.Collect(v.takers(t).all()), v.ownTakers(t))
}
