package node

import (
	"time"

	"github.com/syncd-io/syncd/internal/roster"
)

// Member is a node of the list of members.
type Member = roster.Member

// Members is one reading of a namespace's list of members. It never changes, so that a sync
// sees one list from its beginning to its end; a change makes a new one.
type Members struct {
	*roster.List
	name string
}

// Name is the namespace's alias on this node.
func (m *Members) Name() string { return m.name }

// alone reports whether a node is the only member.
func (m *Members) alone(id ID) bool {
	all := m.List.Members()
	return len(all) == 1 && all[0].ID == id
}

// Admits reports whether a node is a member as of now: by the list, and by the time
// at which its role ends.
func (ns *Namespace) Admits(id ID) bool { return ns.Members().admits(id, ns.node.Now()) }

// admits reports whether a node is a member at a time.
func (m *Members) admits(id ID, now time.Time) bool {
	member, known := m.Member(id)
	return known && !ended(&member, now)
}

// Audience is the members as of now, which may be told what is written here. With
// them it returns when the first of their roles ends; the zero time if none does.
func (ns *Namespace) Audience() (ids map[ID]bool, until time.Time) {
	ids = map[ID]bool{}
	now := ns.node.Now()
	for _, m := range ns.Members().Members() {
		if ended(&m, now) {
			continue
		}
		ids[m.ID] = true
		if end := m.Expires.Time(); m.Expires != 0 && (until.IsZero() || end.Before(until)) {
			until = end
		}
	}
	return ids, until
}

// ended reports whether a membership has ended by its time.
func ended(m *Member, now time.Time) bool { return m.Expires != 0 && now.After(m.Expires.Time()) }
