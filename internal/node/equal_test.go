package node

import (
	"testing"

	"github.com/syncd-io/syncd/internal/syncing"
)

// Two nodes that push, and were proved to hold the same, sync at every fifth interval,
// until one of them changes what it holds.
func TestEqualPairsRest(t *testing.T) {
	ps := newPushers(2, Policy{})
	m, ns, remote := ps.machines[0], ps.spaces[0], ps.machines[1].ID
	turns := func(intervals int) (n int) {
		for range intervals {
			ps.wait(m.Interval)
			if ns.Sets()[0].Rests(remote) {
				continue
			}
			n++
			succeeds(t, m.turn(ns, ps.machines[1]))
		}
		return n
	}
	turns(2) // they may sync what is not alike yet
	if n := turns(30); n != 30/syncing.EqualRest {
		t.Errorf("an equal pair syncs %d times in 30 intervals", n)
	}
	turns(1)
	must(put(ns, "k", "v"))
	if ns.Sets()[0].Rests(remote) {
		t.Error("what this node has written waits")
	}
	m.Push.On = false
	if n := turns(5); n != 5 {
		t.Errorf("without pushes an equal pair syncs %d times in 5 intervals", n)
	}
}

// A member that does not push, whatever it writes, is synced with at each interval: nothing
// else would tell of that.
func TestMembersThatDoNotPushLetNoPairRest(t *testing.T) {
	ps := newPushers(3, Policy{})
	m, ns := ps.machines[0], ps.spaces[0]
	m.Pushes = func(id ID) bool { return id == ps.machines[2].ID }
	for i := 1; i < 3; i++ {
		for range 3 { // they may sync what is not alike yet
			succeeds(t, m.turn(ns, ps.machines[i]))
		}
		if rests := ns.Sets()[0].Rests(ps.machines[i].ID); rests != (i == 2) {
			t.Errorf("member %d, equal a moment ago, rests: %v", i, rests)
		}
	}
}

// A dry run proves what differs, and does not let the two rest.
func TestDryRunsLetNoPairRest(t *testing.T) {
	ps := newPushers(2, Policy{})
	for range 2 { // they may sync what is not alike yet
		must(put(ps.spaces[0], "k", "v"))
		succeeds(t, ps.machines[0].turn(ps.spaces[0], ps.machines[1]))
	}
	must(put(ps.spaces[0], "l", "v"))
	if found, _, err := ps.machines[0].sync(ps.spaces[0], ps.machines[1], syncing.Ask{DryRun: true}); err != nil || !found.Verified || found.MissingThere != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	for i := range 2 {
		if ps.spaces[i].Sets()[0].Rests(ps.machines[1-i].ID) {
			t.Errorf("node %d rests, though the two are known to differ", i)
		}
	}
}
