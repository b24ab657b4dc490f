package roster

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// A role ends: versions by their clock, statements by their time, the list when an
// admin above writes it down.
func TestExpiry(t *testing.T) {
	s := founded(t)
	g := s.say(0, Draft{Kind: Grant, Subject: idOf(1), Role: RoleAdmin, Expires: 110})
	s.say(1, Draft{Kind: Grant, Subject: idOf(2), Role: RoleWrite, Expires: 120})
	w := must(idOf(1).Writer())
	if l := s.List(); !l.MayWrite(w, 110) || l.MayWrite(w, 111) {
		t.Error("the expiry does not bound versions")
	}
	expire := func(n int) Draft { return Draft{Kind: Expire, Subject: idOf(n)} }
	s.refused(0, expire(1)) // not yet
	s.at = 110
	s.grant(0, 3, RoleAdmin)                                           // 111
	s.refused(1, Draft{Kind: Grant, Subject: idOf(4), Role: RoleRead}) // its time is over
	s.refused(3, expire(1))                                            // not above
	s.at = 119
	s.say(3, expire(2)) // 120: each admin may
	s.say(0, expire(1))
	s.roles(RoleAdmin, 0, 0, RoleAdmin)
	// Dated back and apart from that, it is void.
	s.add(s.forge(1, Draft{Kind: Grant, Subject: idOf(4), Role: RoleRead}, 102, g))
	if s.List().Role(idOf(4)) != 0 {
		t.Error("an expired admin grants by dating back")
	}
	// A new grant counts from its own time on.
	s.say(0, Draft{Kind: Grant, Subject: idOf(1), Role: RoleWrite}) // 122
	if l := s.List(); !l.MayWrite(w, 110) || l.MayWrite(w, 111) || l.MayWrite(w, 121) || !l.MayWrite(w, 122) {
		t.Error("the times in which it may write are wrong")
	}
}

// A renewal that was apart from the expiry outlives it: the expiry ends only what
// it had seen expired.
func TestRenewedApart(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	s.say(0, Draft{Kind: Grant, Subject: idOf(2), Role: RoleWrite, Expires: 110})
	s.say(0, Draft{Kind: Grant, Subject: idOf(1), Role: RoleAdmin, Expires: 110})
	a, b := s.fork(), s.fork()
	a.say(0, Draft{Kind: Grant, Subject: idOf(2), Role: RoleWrite, Expires: 200})
	a.say(0, Draft{Kind: Grant, Subject: idOf(1), Role: RoleAdmin})
	b.at = 120
	b.say(0, Draft{Kind: Expire, Subject: idOf(2)})
	b.say(0, Draft{Kind: Expire, Subject: idOf(1)})
	l := agree(t, a, b)
	a.roles(RoleAdmin, RoleAdmin, RoleWrite)
	w := must(idOf(2).Writer())
	for clock, want := range map[dbadapter.Timestamp]bool{1: true, 110: true, 111: true, 200: true, 201: false} {
		if l.MayWrite(w, clock) != want {
			t.Errorf("a version at %d: %v", clock, !want)
		}
	}
}

// A lapse that its member had not seen holds on, though it returned from another.
func TestLapseAndReturn(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	s.grant(0, 2, RoleWrite)
	a, b := s.fork(), s.fork()
	a.say(0, Draft{Kind: Lapse, Subject: idOf(2)})
	b.say(1, Draft{Kind: Lapse, Subject: idOf(2)})
	a.refused(1, Draft{Kind: Lapse, Subject: idOf(2)})
	a.say(2, Draft{Kind: Return, Subject: idOf(2)})
	if m, _ := a.List().Member(idOf(2)); m.Lapsed || m.Epoch != 1 {
		t.Errorf("returned: %+v", m)
	}
	l := agree(t, a, b)
	if m, _ := l.Member(idOf(2)); !m.Lapsed || m.Epoch != 2 || len(l.Active()) != 2 {
		t.Errorf("one lapse is not returned from: %+v", m)
	}
	a.at += 10
	a.say(2, Draft{Kind: Return, Subject: idOf(2)})
	if m, _ := a.List().Member(idOf(2)); m.Lapsed || m.Role != RoleWrite {
		t.Errorf("returned from both: %+v", m)
	}
}

// Versions up to the removal count, and again from where the new grant says.
func TestSince(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleWrite) // 101
	s.remove(0, 1)           // 102
	s.at = 199
	s.say(0, Draft{Kind: Grant, Subject: idOf(1), Role: RoleWrite, Since: 150})
	w := must(idOf(1).Writer())
	for clock, want := range map[dbadapter.Timestamp]bool{0: true, 102: true, 103: false, 149: false, 150: true, 1 << 50: true} {
		if s.List().MayWrite(w, clock) != want {
			t.Errorf("a version at %d: %v", clock, !want)
		}
	}
	s.grant(0, 1, RoleRead) // 201: demoted
	if l := s.List(); !l.MayWrite(w, 201) || l.MayWrite(w, 202) || l.Has(idOf(1), RoleWrite) {
		t.Error("a reader writes")
	}
}
