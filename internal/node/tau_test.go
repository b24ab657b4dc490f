package node

import (
	"testing"
	"time"
)

// Each version is later than what the node vouched for before, also where its clock
// was set back since, and after a restart.
func TestVersionsPassTau(t *testing.T) {
	a := newMachine(1)
	ns := a.create("notes", Policy{})
	a.clock = noon.Add(time.Minute)
	tau := must(ns.tau(t.Context()))
	if tau == 0 {
		t.Fatal("it vouches for nothing")
	}
	a.clock = noon.Add(-time.Minute)
	if v := must(ns.nextVersion()); v.Clock <= tau {
		t.Errorf("with its clock set back it makes the version %s, and has vouched for %d", v, tau)
	}
	if err := ns.Close(); err != nil {
		t.Fatal(err)
	}
	ns = must(a.open(ns.Keys.Secret, must(DecodeState(must(ns.Members().state.Encode())))))
	if v := must(ns.nextVersion()); v.Clock <= tau {
		t.Errorf("opened again, it makes the version %s", v)
	}
}
