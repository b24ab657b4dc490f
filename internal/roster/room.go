package roster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// The bounds of a set. They count the core: what stands, and what that reaches. An
// admin that signs more statements than a set holds can give each part of a cluster
// others of them. The parts then have different lists. But once the admin is removed,
// what it said apart from the removal is void and counts no longer. So each part has
// room for what the other one's admins have said, and what this names. The lists are
// equal again, though the parts never hold the same of the flood.

// count is how many statements count to the bounds.
type count struct {
	core  int
	bytes int
	by    map[ID]int // of the core, by author
	void  int        // that neither stand nor are reached by one that stands
}

func newCount() count { return count{by: map[ID]int{}} }

// add counts a statement as one of the core; the next resolution knows better.
func (c *count) add(e *entry) {
	c.core++
	c.bytes += len(e.value)
	c.by[e.Author]++
}

// room reports whether the set's bounds let a statement in, and counts it. What a
// statement of an admin waits for is let in though its author has no room, or it is
// void. So is what one of the founder waits for, though only the founder has room.
func (s *Set) room(e *entry) error {
	if len(s.entries) >= s.bounds.most() {
		s.resolve() // counts what the next Add may drop
		return fmt.Errorf("%w: the member list has %d statements", dbadapter.ErrLimit, len(s.entries))
	}
	if s.loading {
		s.count.add(e)
		return nil
	}
	claim := s.waiting.claimOf(e)
	full := s.full(e.Author, claim)
	if full != nil {
		s.resolve() // some that counted may be void by now
		full = s.full(e.Author, claim)
	}
	switch {
	case !s.all().couldStand(e):
		s.count.void++ // Shed bounds these
	case full != nil:
		return full
	default:
		s.count.add(e)
	}
	return nil
}

// full refuses one more statement of the core by an author.
func (s *Set) full(author ID, claim claim) error {
	most, bytes := s.bounds.statements, s.bounds.bytes
	if author != s.cfg.Creator && claim < claimFounder {
		most -= s.bounds.reserve
		bytes -= bytes / 16
	}
	switch {
	case s.count.core >= most, s.count.bytes > bytes-MaxValue:
		return fmt.Errorf("%w: the member list has %d statements, of %d bytes", dbadapter.ErrLimit, s.count.core, s.count.bytes)
	case s.count.by[author] >= s.bounds.perAuthor && claim < claimMember:
		return fmt.Errorf("%w: the member list has %d statements by %s", dbadapter.ErrLimit, s.count.by[author], author)
	}
	return nil
}

// crowded reports whether there are twice as many void statements as the set keeps.
func (s *Set) crowded() bool { return !s.loading && s.count.void > 2*s.bounds.void+s.claimed }

// Shed drops void statements until MaxVoid are left. It drops those with the most void
// ones in their past first, then those with the highest hashes. So what is left has its
// past. Of two sets that have heard all from each other the same is left. What members'
// statements name that wait is not dropped. Call it after a number of Adds; Add does it
// by itself only when there are twice as many.
func (s *Set) Shed() {
	if s.resolve(); s.count.void <= s.bounds.void {
		return
	}
	idle := slices.Clone(s.resolve().idle) // the resolution may stay
	var numbers, claimed []int
	for _, e := range idle {
		numbers = append(numbers, e.number)
	}
	for h := range s.waiting.all() {
		for _, head := range h.Heads {
			if i, here := s.byHash[head]; here && h.claims(s.entries[i].Author) > claimNone {
				claimed = append(claimed, i)
			}
		}
	}
	all, needed := bitsOf(numbers), s.all().reached(claimed).union(bitsOf(claimed))
	s.claimed = all.count(needed)
	idle = slices.DeleteFunc(idle, func(e *entry) bool { return needed.has(e.number) })
	if len(idle) <= s.bounds.void {
		return
	}
	depth := map[*entry]int{}
	for _, e := range idle {
		depth[e] = all.count(e.past)
	}
	slices.SortFunc(idle, func(a, b *entry) int { return cmp.Or(cmp.Compare(depth[a], depth[b]), byHash(a, b)) })
	drop := map[Hash]bool{}
	for _, e := range idle[s.bounds.void:] {
		drop[e.hash] = true
		s.dropped = append(s.dropped, e.value)
	}
	rest := s.without(drop)
	s.entries, s.byHash, s.founds, s.subjects, s.own = rest.entries, rest.byHash, rest.founds, rest.subjects, rest.own
	s.resolved = nil
	s.resolve() // counts anew
}

// without is a copy of the set without some statements that no other one in it names.
// Nothing waits in it.
func (s *Set) without(drop map[Hash]bool) *Set {
	c := New(s.cfg)
	c.bounds = s.bounds
	place := make([]int, len(s.entries)) // in the copy
	for i, old := range s.entries {
		if drop[old.hash] {
			continue
		}
		e := newEntry(old.Statement, old.hash, old.value)
		c.see(e)
		for _, t := range old.seats {
			if t != root {
				t = seatOf(place[t.entry()])
			}
			e.seats = append(e.seats, t)
		}
		for _, g := range old.grants {
			e.grants = append(e.grants, place[g])
		}
		above := slices.Collect(old.above.all())
		for n, t := range above {
			if seat(t) != root {
				above[n] = int(seatOf(place[seat(t).entry()]))
			}
		}
		e.above = bitsOf(above)
		place[i] = len(c.entries)
		c.enter(e)
	}
	return c
}

// Dropped are the statements that Shed has dropped since the last call.
func (s *Set) Dropped() [][]byte {
	dropped := s.dropped
	s.dropped = nil
	return dropped
}
