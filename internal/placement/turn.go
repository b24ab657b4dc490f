package placement

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/internal/roster"
)

// When an admin's node states the next layout.
const (
	// settle is how long the hosts must have been the same. So a cluster that is being set
	// up gets one layout, and not one with each host.
	settle = 10 * time.Second
	// longest bounds that, from the first change on.
	longest = time.Minute
	// absent is how long the table of the layout that counts may be under way.
	absent = time.Minute
	// step is by how much an admin's node waits longer than the one before it, until its
	// statement has come. lateSteps is how many of these there are.
	step      = 5 * time.Second
	lateSteps = 8
)

// Turn says when an admin's node is to state the next layout. It is for one goroutine at a
// time. The zero value is ready.
//
// That all nodes agree does not rest on it. Of layouts that are stated at once one counts,
// and admins that see the same hosts make the same. It keeps the statements few.
type Turn struct {
	basis       Basis // of the hosts at the last change
	absent      bool  // at the last change the table was not here
	ended       int   // how many moves had ended at the last change
	first, last time.Time
}

// Standing is what decides whether the next layout is due.
type Standing struct {
	Layout *Layout // by which this node goes; nil: it knows none
	// Absent: the list names a later layout, whose table is not here.
	Absent bool
	// Void: a layout that is later than the one that counts is void, and nodes may go by it.
	Void bool
	// Ended are the moves that the next layout ends, and Under the others.
	Ended, Under int
}

// At is when the node is to state the layout that Next makes of the hosts, if nothing changes
// until then. false: the one by which it goes suits them, and no move has ended. It is to be
// asked with each change of what it is given, and again at that time. The admins are those of
// the list, the node among them.
func (t *Turn) At(now time.Time, s Standing, hosts []roster.ID, admins []roster.ID, self roster.ID) (at time.Time, due bool) {
	suits := s.Layout != nil && !s.Absent && !s.Void && s.Layout.Suits(hosts)
	if len(hosts) == 0 || suits && s.Ended == 0 {
		*t = Turn{}
		return time.Time{}, false
	}
	basis, wait, missing := basisOf(hosts), settle, s.Layout == nil || s.Absent
	switch {
	case missing:
		wait = absent
	case suits && s.Under == 0:
		wait = 0 // one layout ends all moves
	}
	if t.first.IsZero() {
		t.first = now
	}
	if t.last.IsZero() || t.basis != basis || t.absent != missing || t.ended != s.Ended {
		t.basis, t.absent, t.ended, t.last = basis, missing, s.Ended, now
	}
	at = t.last.Add(wait)
	if latest := t.first.Add(max(longest, wait)); latest.Before(at) {
		at = latest
	}
	return at.Add(time.Duration(rank(basis, admins, self)) * step), true
}

// rank is how many of the admins come before a node. It is another order with each
// basis, so that an admin that is away does not delay each layout.
func rank(basis Basis, admins []roster.ID, self roster.ID) int {
	draw := func(id roster.ID) uint64 { return xxh3.HashStringSeed(string(id), binary.BigEndian.Uint64(basis[:])) }
	before := 0
	for _, id := range admins {
		if cmp.Or(cmp.Compare(draw(id), draw(self)), cmp.Compare(id, self)) < 0 {
			before++
		}
	}
	return min(before, lateSteps)
}

// HostsOf are the members that may hold shards. They are those that may write, since a
// host also takes over what a removed member has written. Those that the others do not
// wait for are not among them: with these no move would end.
func HostsOf(list *roster.List, willing func(roster.ID) bool) (hosts []roster.ID) {
	for _, m := range list.Active() {
		if m.Role >= roster.RoleWrite && willing(m.ID) {
			hosts = append(hosts, m.ID)
		}
	}
	return slices.Clip(hosts)
}
