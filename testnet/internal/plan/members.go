package plan

import (
	"cmp"
	"slices"
	"time"
)

// changes are the changes of the list of members to draw from.
var changes = []Verb{SetRole, SetRole, SetRole, SetRole, Term, Remove, Remove, Remove, Lapse, Lapse, Join, Join, Redeem}

// roles are those of random grants.
var roles = []string{"admin", "admin", "write", "write", "write", "read"}

// change draws change n of a line. Nodes with low numbers are its authors more often,
// as are the admins that made others admins. A node that may not make the change
// refuses it.
func (p *Plan) change(e *Event, n int) Event {
	d := p.draw("members", e.At, n)
	c := Event{At: e.At + d.within(e.For), Verb: changes[d.IntN(len(changes))]}
	c.Node, c.Peer = d.pair(p.Nodes)
	if d.IntN(2) == 0 {
		c.Node, c.Peer = min(c.Node, c.Peer), max(c.Node, c.Peer)
	}
	switch c.Verb {
	case SetRole, Term:
		c.Key = roles[d.IntN(len(roles))]
		if c.Verb == Term {
			c.For = time.Duration(d.scale(max(1, e.For.Milliseconds()))) * time.Millisecond
		}
		if d.IntN(12) == 0 {
			c.Peer = c.Node
		}
	case Remove:
		if d.IntN(12) == 0 {
			c.Peer = c.Node // it leaves
		}
	case Join:
		c.Node, c.Peer = c.Peer, c.Node // the joiner comes first
		c.Key = d.joinRole()
	}
	return c
}

// joinRole is that of a drawn ticket; the empty one stands for write.
func (d *draw) joinRole() string {
	if role := roles[d.IntN(len(roles))]; role != "write" {
		return role
	}
	return ""
}

// gathering draws how the nodes join, each by one that was to join before it.
func (p *Plan) gathering(d *draw, until time.Duration) (joins []Event) {
	order := d.Perm(p.Nodes - 1)
	for i, n := range order {
		by := 0 // node 0 has the namespace
		if k := d.IntN(i + 1); k > 0 {
			by = order[k-1] + 1
		}
		j := Event{At: until * time.Duration(i+1) / time.Duration(p.Nodes), Verb: Join, Node: n + 1, Peer: by}
		if d.IntN(2) == 0 {
			j.Key = "admin"
		}
		joins = append(joins, j)
	}
	slices.SortStableFunc(joins, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return joins
}
