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
	// settle is how long the hosts must have been the same: a cluster that is being set up
	// gets one layout, and not one with each host.
	settle = 10 * time.Second
	// longest bounds that, from the first change on.
	longest = time.Minute
	// absent is how long the table of the layout that counts may be under way.
	absent = time.Minute
	// step is by how much an admin's node waits longer than the one before it, until its
	// statement has come, and lateSteps how many there are of that.
	step      = 5 * time.Second
	lateSteps = 8
)

// Turn says when an admin's node is to state the next layout. It is for one goroutine at a
// time. The zero value is ready.
//
// That all nodes agree does not rest on it: of layouts that are stated at once one counts,
// and admins that see the same hosts make the same. It keeps the statements few.
type Turn struct {
	basis       Basis // of the hosts at the last change
	absent      bool  // at the last change the table was not here
	first, last time.Time
}

// At is when the node is to state the layout that Plan makes of the hosts, if nothing
// changes until then; false: the layout that counts suits them. It is to be asked with
// each change of what it is given, and again at that time. layout is the one that counts,
// or nil: the list has no layout, or this node lacks its table. The admins are those of the
// list, the node among them.
func (t *Turn) At(now time.Time, layout *Layout, hosts []Host, admins []roster.ID, self roster.ID) (at time.Time, due bool) {
	if len(hosts) == 0 || layout != nil && layout.Suits(hosts) {
		*t = Turn{}
		return time.Time{}, false
	}
	basis, wait := basisOf(hosts), settle
	if layout == nil {
		wait = absent
	}
	if t.first.IsZero() {
		t.first = now
	}
	if t.last.IsZero() || t.basis != basis || t.absent != (layout == nil) {
		t.basis, t.absent, t.last = basis, layout == nil, now
	}
	at = t.last.Add(wait)
	if latest := t.first.Add(max(longest, wait)); latest.Before(at) {
		at = latest
	}
	return at.Add(time.Duration(rank(basis, admins, self)) * step), true
}

// rank is how many of the admins come before a node: another order with each basis, so
// that an admin that is away does not delay each layout.
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

// HostsOf are the members that may hold shards: those that may write, since a host also
// takes over what a removed member has written; without those that the others do not wait
// for, with which no handover would end. about gives what a member says of itself as a
// host; false: it is not willing to be one.
func HostsOf(list *roster.List, about func(roster.ID) (weight int, zone string, willing bool)) (hosts []Host) {
	for _, m := range list.Active() {
		weight, zone, willing := about(m.ID)
		if m.Role < roster.RoleWrite || !willing {
			continue
		}
		hosts = append(hosts, Host{ID: m.ID, Weight: min(max(weight, 1), MaxWeight), Zone: zone[:min(len(zone), MaxZone)]})
	}
	return slices.Clip(hosts)
}
