package check

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// Roster is the list of members as one node has it.
type Roster struct {
	Digest [16]byte
	// Seats are the members, by number. A membership that has ended by its time is
	// not among them.
	Seats []Seat
	// MayWrite reports whether a writer had the right to write a version with that
	// clock; nil where every record of a member counts.
	MayWrite func(writer dbadapter.WriterID, clock dbadapter.Timestamp) bool
}

// Seat is one member of a list.
type Seat struct {
	Node   int
	Role   string
	Lapsed bool
}

// grant is a role that a node was asked to give.
type grant struct {
	by   int
	seat Seat
}

// Founded notes the node that has made the namespace.
func (h *History) Founded(node int) { h.Granting(node, node, admin) }

const (
	admin  = "admin"
	reader = "read"
)

// Granting notes that a node is asked to give another a role, now or by a ticket. It
// may refuse, or do so later.
//
// Of a right to write and one to read only, which two admins give one node apart, the
// greater admin's holds in the end. The other's ends, as if a person had taken it (see
// Excuse).
func (h *History) Granting(by, to int, role string) {
	h.gone.excused = h.gone.excused || slices.ContainsFunc(h.grants, func(g grant) bool {
		return g.seat.Node == to && (g.seat.Role == reader) != (role == reader)
	})
	h.grants = append(h.grants, grant{by, Seat{Node: to, Role: role}})
}

// possible is the reference for the list of members: the roles that nodes can have at
// the most. They can have those that an admin, or one that may have been, was asked to
// give them. It is not what the list is, which depends on what each author had heard.
func (h *History) possible() map[Seat]bool {
	seats := map[Seat]bool{}
	if len(h.grants) > 0 {
		seats[h.grants[0].seat] = true // the founder's
	}
	for before := -1; before != len(seats); {
		before = len(seats)
		for _, g := range h.grants {
			if seats[Seat{Node: g.by, Role: admin}] {
				seats[g.seat] = true
			}
		}
	}
	return seats
}

// members compares the lists of nodes that reach each other with the first of them,
// and with what was asked for.
func (h *History) members(group []*Final, all []Final) {
	first := group[0]
	if first.Roster == nil || first.Outside {
		return
	}
	for _, f := range group[1:] {
		switch a, b := first.Roster, f.Roster; {
		case b == nil:
			h.found.say(Members, f.Node, "", "it has no list of members, and node %d has one", first.Node)
		case !slices.Equal(a.Seats, b.Seats):
			h.found.say(Members, f.Node, "", "its members are %v, those of node %d are %v", b.Seats, first.Node, a.Seats)
		case a.Digest != b.Digest:
			h.found.say(Members, f.Node, "", "its list has another digest than that of node %d, with the same members", first.Node)
		}
	}
	for _, node := range first.Roster.Returning(func(node int) bool {
		return slices.ContainsFunc(group, func(f *Final) bool { return f.Node == node })
	}) {
		h.found.say(Members, node, "", "it is back, and has not returned from its lapse")
	}
	possible := h.possible()
	for _, s := range first.Roster.Seats {
		if len(possible) > 0 && !possible[Seat{Node: s.Node, Role: s.Role}] {
			h.found.say(Members, s.Node, "", "node %d lists it with the role %s, which no admin gave it", first.Node, s.Role)
		}
		for i := range all {
			if f := &all[i]; f.Node == s.Node && f.Outside && f.Roster.Lists(first.Node) && !f.Down {
				h.found.say(Members, s.Node, "", "it says that it is not a member any more, and node %d lists it", first.Node)
			}
		}
	}
	for _, f := range group {
		if !first.Roster.Lists(f.Node) {
			h.found.say(Members, f.Node, "", "it takes itself for a member, and node %d does not list it", first.Node)
		}
	}
}

// Returning are the nodes that have lapsed and should return. here reports which nodes
// reach each other. They return if one of those that the members wait for is there:
// from it they can learn what they lack. They also return if the members wait for no
// node at all.
func (r *Roster) Returning(here func(node int) bool) (nodes []int) {
	met, active := false, false
	for _, s := range r.Seats {
		active = active || !s.Lapsed
		met = met || !s.Lapsed && here(s.Node)
	}
	for _, s := range r.Seats {
		if s.Lapsed && here(s.Node) && (met || !active) {
			nodes = append(nodes, s.Node)
		}
	}
	return nodes
}

// Lists reports whether a list names a node. One that does not answers it nothing.
func (r *Roster) Lists(node int) bool {
	return r != nil && slices.ContainsFunc(r.Seats, func(s Seat) bool { return s.Node == node })
}

// Allows reports whether the record's writer had the right to write it.
func (r *Roster) Allows(record *dbadapter.Record) bool {
	by := record.Version.Writer
	if by == 0 {
		by = record.Signer // of a dated import
	}
	return r.MayWrite == nil || r.MayWrite(by, record.Version.Clock)
}

// rights looks for records of writers that had not the right to write them.
func (h *History) rights(f *Final) {
	if f.Outside || f.Roster == nil {
		return
	}
	for i := range f.Dump {
		if r := &f.Dump[i]; !f.Roster.Allows(r) {
			h.found.say(Rights, f.Node, string(r.Key), "it holds %s, and its writer had not the right to write then", stampOf(r))
		}
	}
}
