package node

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// relogged is a store whose change logs have other ids than when it was last opened, as one
// that was restored from a dump.
type relogged struct{ dbadapter.Namespace }

func (r relogged) Log() dbadapter.LogID { return r.Namespace.Log() + 1 }

// A namespace whose store was restored beside its state recovers, durably, and lacks nothing
// again once it was found equal with a member. One whose store is as it was does not.
func TestStoreRestoredBesideState(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "one", "1")
	c.round()
	c.quiet()
	reopen := func(restored bool) *State {
		m, ns := c.machines[2], c.ns[2]
		state := must(DecodeState(must(ns.state.Load().Encode())))
		state.FilledTo = []byte("k")
		succeeds(t, ns.Close())
		m.Forget(ns)
		var saved *State
		m.save = func(s *State) error { saved = s.clone(); return nil }
		m.restored = restored
		c.ns[2] = must(m.open(ns.Sets()[0].Keys.Secret, state))
		m.save = nil
		if restored && saved == nil {
			t.Fatal("the state was not saved")
		}
		return c.ns[2].state.Load()
	}
	if s := reopen(false); s.Watermark.Recovering || s.FilledTo == nil || c.ns[2].OtherStore() {
		t.Error("opened again, it recovers")
	}
	if s := reopen(true); !s.Watermark.Recovering || s.FilledTo != nil || !c.ns[2].OtherStore() {
		t.Error("with a store that was restored, it does not recover")
	}
	if !c.ns[2].Sets()[0].Collection().Recovering {
		t.Error("the collection does not wait for the recovery")
	}
	for range 3 {
		c.round()
	}
	if c.ns[2].Sets()[0].Collection().Recovering {
		t.Error("it still recovers")
	}
}
