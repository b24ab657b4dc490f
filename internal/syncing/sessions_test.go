package syncing

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// Two nodes that begin the same sync at once do one of the two: of any two ids,
// exactly one yields.
func TestOneOfTwoYields(t *testing.T) {
	ids := []roster.ID{"", "\x00", "a", "ab", "b", "\xff", "\xff\xff"}
	for seed := range 20 {
		ids = append(ids, roster.ID(fmt.Sprint("peer ", seed)))
	}
	ns := dbadapter.NamespaceID{1}
	for i, a := range ids {
		for j, b := range ids {
			if i == j {
				continue
			}
			atA, atB := NewSessions(Places{}), NewSessions(Places{})
			doneA, doneB := atA.Call(ns, b), atB.Call(ns, a)
			if ya, yb := atA.Yields(ns, a, b), atB.Yields(ns, b, a); ya == yb || ya != (a < b) {
				t.Errorf("%x yields: %t, %x yields: %t", a, ya, b, yb)
			}
			again := atA.Call(ns, b)
			if again(); atA.Yields(ns, a, b) != (a < b) {
				t.Error("one of two calls is over, and both are forgotten")
			}
			if doneA(); atA.Yields(ns, a, b) || len(atA.calls) != 0 {
				t.Error("it waits for what is over")
			}
			doneB()
		}
	}
	// Another namespace, and another peer, have nothing to do with it.
	s := NewSessions(Places{})
	defer s.Call(ns, "b")()
	if !s.Yields(ns, "a", "b") || s.Yields(ns, "a", "c") || s.Yields(dbadapter.NamespaceID{2}, "a", "b") {
		t.Error("it waits for nothing")
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := NewSessions(Places{Sessions: 3, PerPeer: 2})
	var release []func()
	take := func(id roster.ID, want bool) {
		t.Helper()
		r, ok := s.Accept(id)
		if ok != want {
			t.Errorf("accept %s: %t", id, ok)
		}
		if ok {
			release = append(release, r)
		}
	}
	take("a", true)
	take("a", true)
	take("a", false)
	take("b", true)
	take("c", false)
	for _, r := range release {
		r()
	}
	if s.incoming.all != 0 || len(s.incoming.of) != 0 {
		t.Errorf("left %d, %v", s.incoming.all, s.incoming.of)
	}
	take("c", true)
}

// A crowd of strangers that have not said what they want keeps no member out, and
// a crowd of members no stranger; one peer has its share.
func TestGreetingsAreBounded(t *testing.T) {
	s := NewSessions(Places{Greetings: 10, PerPeer: 2})
	var leave []func()
	for _, member := range []bool{false, true} {
		crowd := 0
		for i := range 20 {
			if done, ok := s.Greet(roster.ID(fmt.Sprint(member, i)), member); ok {
				crowd++
				leave = append(leave, done)
			}
		}
		if crowd != 10 {
			t.Errorf("members %t: %d of 20 have a place", member, crowd)
		}
	}
	for _, done := range leave {
		done()
	}
	if left := s.members.all + s.others.all + len(s.members.of) + len(s.others.of); left != 0 {
		t.Errorf("all have left, and %d are counted", left)
	}
	for i, want := range []bool{true, true, false} {
		if _, ok := s.Greet("a", true); ok != want {
			t.Errorf("greeting %d of one peer: %t", i, ok)
		}
	}
}
