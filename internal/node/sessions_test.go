package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Two nodes that begin the same sync at once do one of the two: of any two ids,
// exactly one yields.
func TestOneOfTwoYields(t *testing.T) {
	ids := []ID{"", "\x00", "a", "ab", "b", "\xff", "\xff\xff"}
	for seed := range 20 {
		ids = append(ids, idOf(seed))
	}
	ns := dbadapter.NamespaceID{1}
	for i, a := range ids {
		for j, b := range ids {
			if i == j {
				continue
			}
			atA, atB := newSessions(Places{}), newSessions(Places{})
			doneA, doneB := atA.calling(ns, b), atB.calling(ns, a)
			if ya, yb := atA.yields(ns, a, b), atB.yields(ns, b, a); ya == yb || ya != (a < b) {
				t.Errorf("%x yields: %t, %x yields: %t", a, ya, b, yb)
			}
			again := atA.calling(ns, b)
			if again(); atA.yields(ns, a, b) != (a < b) {
				t.Error("one of two calls is over, and both are forgotten")
			}
			if doneA(); atA.yields(ns, a, b) || len(atA.calls) != 0 {
				t.Error("it waits for what is over")
			}
			doneB()
		}
	}
	// Another namespace, and another peer, have nothing to do with it.
	s := newSessions(Places{})
	defer s.calling(ns, "b")()
	if !s.yields(ns, "a", "b") || s.yields(ns, "a", "c") || s.yields(dbadapter.NamespaceID{2}, "a", "b") {
		t.Error("it waits for nothing")
	}
}

// The same of two nodes with their namespaces: whichever calls, one sync takes
// place. A dry run does not wait, and no other sync waits for it.
func TestCallersYield(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	hello := someHello(sa)
	dry := *hello
	dry.DryRun = true
	answers := func() (atA, atB error) {
		for _, h := range []*wire.Hello{hello, &dry} {
			for _, side := range []struct {
				of  *machine
				by  ID
				err *error
			}{{a, b.ID, &atA}, {b, a.ID, &atB}} {
				_, done, err := side.of.Answer(side.by, h)
				if err == nil {
					done()
				}
				if h.DryRun && err != nil {
					t.Errorf("a dry run: %v", err)
				}
				if !h.DryRun {
					*side.err = err
				}
			}
		}
		return atA, atB
	}
	if atA, atB := answers(); atA != nil || atB != nil {
		t.Errorf("neither calls: %v, %v", atA, atB)
	}
	quietly := sa.Sets()[0].Call(b.ID, Ask{DryRun: true})
	quietly2 := sb.Sets()[0].Call(a.ID, Ask{DryRun: true})
	if atA, atB := answers(); atA != nil || atB != nil {
		t.Errorf("both call for a dry run: %v, %v", atA, atB)
	}
	quietly()
	quietly2()
	doneA, doneB := sa.Sets()[0].Call(b.ID, Ask{}), sb.Sets()[0].Call(a.ID, Ask{})
	atA, atB := answers()
	if (atA == nil) == (atB == nil) || !errors.Is(errors.Join(atA, atB), reconcile.ErrBusy) || (atA != nil) != (a.ID < b.ID) {
		t.Errorf("both call: %v, %v", atA, atB)
	}
	doneA()
	doneB()
	if atA, atB := answers(); atA != nil || atB != nil {
		t.Errorf("both are done: %v, %v", atA, atB)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := newSessions(Places{Sessions: 3, PerPeer: 2})
	var release []func()
	take := func(id ID, want bool) {
		t.Helper()
		r, ok := s.accept(id)
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
	if s.incoming != 0 || len(s.peers) != 0 {
		t.Errorf("left %d, %v", s.incoming, s.peers)
	}
	take("c", true)
}

// A crowd of strangers that have not said what they want keeps no member out, and
// a crowd of members no stranger; one peer has its share.
func TestGreetingsAreBounded(t *testing.T) {
	s := newSessions(Places{Greetings: 10, PerPeer: 2})
	var leave []func()
	for _, member := range []bool{false, true} {
		crowd := 0
		for i := range 20 {
			if done, ok := s.Greet(ID(fmt.Sprint(member, i)), member); ok {
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
	if s.members+s.others+len(s.greeting) != 0 {
		t.Errorf("all have left: %d, %d, %v", s.members, s.others, s.greeting)
	}
	for i, want := range []bool{true, true, false} {
		if _, ok := s.Greet("a", i == 0); ok != want {
			t.Errorf("greeting %d of one peer: %t", i, ok)
		}
	}
}
