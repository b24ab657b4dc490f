package roster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// later reports whether the expiry a comes after b; 0 is never.
func later(a, b dbadapter.Timestamp) bool { return b != 0 && (a == 0 || a > b) }

// examine decides whether a statement may be made by what it had seen. That is a
// function of the statement and its past, so that each node decides the same. It
// notes the author's seats, and those above a new one.
func (s *Set) examine(e *entry) error {
	if e.Kind == Found {
		if e.Author != s.cfg.Creator {
			return errors.New("only the creator founds a namespace")
		}
		if string(e.Placement) != s.cfg.Placement {
			return errors.New("the namespace's id is made of another placement")
		}
		return nil
	}
	v := s.view(e.past)
	if e.ofItself() {
		switch role, _ := v.role(e.Author); {
		case role == 0:
			return errors.New("the author was not a member")
		case e.Kind == Return && !v.lapsed(e.Author):
			return errors.New("the author was not lapsed")
		}
		if e.seats = v.seats(e.Author); len(e.seats) == 0 {
			e.grants = v.plain(e.Author)
		}
		return nil
	}
	for _, t := range v.seats(e.Author) {
		if t == root || v.at(t).Expires == 0 || e.At <= v.at(t).Expires {
			e.seats = append(e.seats, t)
		}
	}
	if len(e.seats) == 0 {
		return errors.New("the author was not an admin")
	}
	if e.Kind == Layout {
		return s.examineLayout(e)
	}
	if err := v.effect(e); err != nil {
		return err
	}
	if e.Kind == Grant && e.Role == RoleAdmin {
		e.above = v.aboveNew(e.seats)
	}
	return nil
}

// maxStep is by how much an epoch may exceed those that its statement had seen. It also
// exceeds those of void layouts, which no statement names. Without a bound it could be so
// great that no other one followed.
const maxStep = 1 << 20

// examineLayout refuses a layout of a namespace that has one shard, and an epoch that does
// not follow those that it had seen.
func (s *Set) examineLayout(e *entry) error {
	if s.cfg.Placement == "" {
		return errors.New("the namespace is one shard, and has no layouts")
	}
	if seen := s.epochSeen(e.Heads); e.Epoch <= seen || e.Epoch-seen > maxStep {
		return fmt.Errorf("its epoch is %d, and what it had seen makes it %d, or up to %d more", e.Epoch, seen+1, maxStep-1)
	}
	return nil
}

// aboveNew are the seats above one that an author with these seats gives: all of
// these, and what is above each of these.
func (v *view) aboveNew(seats []seat) bits {
	above := v.above(seats[0])
	for _, t := range seats[1:] {
		above = above.intersect(v.above(t))
	}
	for _, t := range seats {
		above = above.with(int(t))
	}
	return above
}

// effect refuses a statement that changes nothing in what it had seen.
func (v *view) effect(e *entry) error {
	role, _ := v.role(e.Subject)
	own := e.Author == e.Subject
	under := func(t seat) bool {
		return own || slices.ContainsFunc(e.seats, func(u seat) bool { return v.above(t).has(int(u)) })
	}
	seats := v.seats(e.Subject)
	switch e.Kind {
	case Grant:
		if len(seats) == 0 || slices.ContainsFunc(seats, under) {
			return nil
		}
		if e.Role < RoleAdmin {
			return fmt.Errorf("the admin %s is not below the author", e.Subject)
		}
		if len(seats) >= maxSeats {
			return fmt.Errorf("%d admins have made %s an admin already", maxSeats, e.Subject)
		}
	case Remove:
		switch {
		case role == 0:
			return fmt.Errorf("%s was not a member", e.Subject)
		case role == RoleAdmin && !slices.ContainsFunc(seats, under):
			return fmt.Errorf("the admin %s is not below the author", e.Subject)
		}
	case Expire:
		expired := slices.ContainsFunc(v.plain(e.Subject), func(g int) bool { return v.set.entries[g].expiredBy(e) })
		expired = expired || slices.ContainsFunc(seats, func(t seat) bool { return t != root && under(t) && v.at(t).expiredBy(e) })
		if !expired {
			return fmt.Errorf("no role of %s had expired that the author may end", e.Subject)
		}
	case Lapse:
		switch {
		case role == 0:
			return fmt.Errorf("%s was not a member", e.Subject)
		case v.lapsed(e.Subject):
			return fmt.Errorf("%s was lapsed already", e.Subject)
		}
	}
	return nil
}
