package node

import (
	"errors"
	"testing"
	"time"
)

// Each version is later than what the node said before, also where its clock
// was set back since, and after a restart.
func TestVersionsPassTau(t *testing.T) {
	a, ns := newAlone()
	a.clock = noon.Add(time.Minute)
	tau := must(ns.Sets()[0].gc.Tau(t.Context()))
	if tau == 0 {
		t.Fatal("it says nothing")
	}
	a.clock = noon.Add(-time.Minute)
	if v := must(ns.NextVersion()); v.Clock <= tau {
		t.Errorf("with its clock set back it makes the version %s, and has said %d", v, tau)
	}
	succeeds(t, ns.Close())
	ns = must(a.open(ns.Sets()[0].Keys.Secret, must(DecodeState(must(ns.state.Load().Encode())))))
	if v := must(ns.NextVersion()); v.Clock <= tau {
		t.Errorf("opened again, it makes the version %s", v)
	}
}

// A reading of the clock from before a change of the list of members is not greeted
// under the list after it.
func TestReadingOfAnEarlierList(t *testing.T) {
	c := newCrew(t, 2)
	ns, m := c.ns[0], c.machines[0]
	if s := must(ns.Sets()[0].gc.Greet(t.Context(), ns.Sets()[0].Lists)); s.Tau == 0 {
		t.Fatal("it says nothing")
	}
	now := m.Now
	m.Now = func() time.Time { // between the reading and the greeting
		m.Now = now
		succeeds(t, setRole(ns, c.machines[1].ID, RoleRead))
		return now()
	}
	if s := must(ns.Sets()[0].gc.Greet(t.Context(), ns.Sets()[0].Lists)); s.Tau != 0 || s.List != ns.Members().Digest() {
		t.Errorf("it greets with the reading %d and the list %x, which is %x now", s.Tau, s.List, ns.Members().Digest())
	}
}

// A node that was closed in order goes on with the machine's time: a write of it after a
// restart must not win over what others write seconds later.
func TestClockAfterAnOrderlyRestart(t *testing.T) {
	a, ns := newAlone()
	a.clock = noon.Add(time.Minute)
	tau := must(ns.Sets()[0].gc.Tau(t.Context()))
	succeeds(t, errors.Join(ns.Rest(t.Context()), ns.Close()))
	ns = must(a.open(ns.Sets()[0].Keys.Secret, must(DecodeState(must(ns.state.Load().Encode())))))
	v := must(ns.NextVersion())
	if ahead := v.Clock.Time().Sub(a.clock); ahead > time.Second || v.Clock <= tau {
		t.Errorf("opened again, it makes the version %s, %s ahead; it has said %d", v, ahead, tau)
	}
}
