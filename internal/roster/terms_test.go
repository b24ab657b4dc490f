package roster

import (
	"testing"
)

// A role ends: versions by their clock, statements by their time, the list when an
// admin above writes it down.
func TestExpiry(t *testing.T) {
	s := founded(t)
	g := s.say(0, Statement{Kind: Grant, Subject: idOf(1), Role: RoleAdmin, Expires: 110})
	s.say(1, Statement{Kind: Grant, Subject: idOf(2), Role: RoleWrite, Expires: 120})
	w := must(idOf(1).Writer())
	if l := s.List(); !l.MayWrite(w, 110) || l.MayWrite(w, 111) {
		t.Error("the expiry does not bound versions")
	}
	expire := func(n int) Statement { return Statement{Kind: Expire, Subject: idOf(n)} }
	s.refused(0, expire(1)) // not yet
	s.at = 110
	s.grant(0, 3, RoleAdmin)                                               // 111
	s.refused(1, Statement{Kind: Grant, Subject: idOf(4), Role: RoleRead}) // its time is over
	s.refused(3, expire(1))                                                // not above
	s.at = 119
	s.say(3, expire(2)) // 120: each admin may
	s.say(0, expire(1))
	s.roles(RoleAdmin, 0, 0, RoleAdmin)
	// Dated back and apart from that, it is void.
	s.add(s.forge(1, Statement{Kind: Grant, Subject: idOf(4), Role: RoleRead}, 102, g))
	if s.List().Role(idOf(4)) != 0 {
		t.Error("an expired admin grants by dating back")
	}
	// A new grant counts from its own time on.
	s.say(0, Statement{Kind: Grant, Subject: idOf(1), Role: RoleWrite}) // 122
	if l := s.List(); !l.MayWrite(w, 110) || l.MayWrite(w, 111) || l.MayWrite(w, 121) || !l.MayWrite(w, 122) {
		t.Error("the times in which it may write are wrong")
	}
}
