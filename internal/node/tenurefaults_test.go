package node

import (
	"errors"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// handed syncs an old host with the shard's hosts until it may leave it.
func (w *movers) handed(old int, hosts []int, set *Set) {
	w.t.Helper()
	for range 3 {
		for _, i := range hosts {
			w.sync(old, i)
		}
	}
	if !set.tenure.mayEnd() {
		w.t.Fatalf("missing %v", set.tenure.handover.Missing())
	}
}

// That a shard is left is tried again where it could not be made durable, since it may be:
// until then no record enters.
func TestLeaveIsTriedAgain(t *testing.T) {
	w := newMovers(t, 1, 3)
	old, hosts, set := w.old()
	m := w.all[old]
	w.handed(old, hosts, set)
	m.steps = 1 // the next save fails, as on a full disk
	err := m.ns.Leave(set)
	m.steps = -1
	if !errors.Is(err, errCrash) {
		t.Fatalf("leave: %v", err)
	}
	if _, err := commit(set.Write(draft("k", "value"))); !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("a write to a shard that may be left: %v", err)
	}
	if _, leave := m.ns.Moves(); !slices.Equal(leave, []*Set{set}) {
		t.Errorf("to be left: %v", leave)
	}
	if err := m.ns.Leave(set); err != nil {
		t.Error(err)
	}
	if _, leave := m.ns.Moves(); len(leave) != 0 || m.held(0) != nil {
		t.Errorf("it has left, and is to leave %v", leave)
	}
}
