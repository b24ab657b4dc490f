package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// write has a node write, and gives what it pushes of it.
func (ps *pushers) write(i int) []byte {
	must(put(ps.spaces[i], "k", "v"))
	ps.wait(5 * time.Millisecond)
	return ps.pushes(i)[0]
}

// done ends a sync that pushes brought about.
func (ps *pushers) done(i, with int, err error) {
	ps.spaces[i].Sets()[0].Pushes().SyncDone(ps.machines[with].ID, ps.machines[with].ID, err)
}

// A sync that failed is tried again for the same reason, ever later, and one in which
// records were declined is not.
func TestHastenedSyncsAreRepeated(t *testing.T) {
	for name, again := range map[string]bool{"unreachable": true, "rejected": false, "": false} {
		t.Run(name, func(t *testing.T) {
			ps := newPushers(2, Policy{})
			ps.must(t, 0, 1, ps.write(1))
			ps.write(1)
			ps.must(t, 0, 1, ps.write(1))
			ps.wait(time.Second)
			err := map[string]error{"unreachable": reconcile.ErrUnreachable, "rejected": fmt.Errorf("it declines: %w", syncing.ErrRejected)}[name]
			for round := range 3 {
				if with := ps.syncs(0); with != 1 {
					t.Fatalf("in round %d: a sync with %d", round, with)
				}
				ps.done(0, 1, err)
				ps.must(t, 0, 1, ps.write(1)) // which comes, and lacks nothing itself
				if ps.wait(time.Second << round); !again {
					break
				}
			}
			if with := ps.syncs(0); !again && with != -1 {
				t.Errorf("a reason that is gone leads to a sync with %d", with)
			}
		})
	}
}

// A member that cannot be reached for long is left to the syncs at intervals.
func TestHastenedSyncsAreGivenUp(t *testing.T) {
	ps := newPushers(2, Policy{})
	ps.must(t, 0, 1, ps.write(1))
	ps.write(1)
	ps.must(t, 0, 1, ps.write(1))
	for range 30 {
		ps.wait(ps.machines[0].Interval)
		if ps.syncs(0) < 0 {
			return
		}
		ps.done(0, 1, reconcile.ErrUnreachable)
	}
	t.Error("a failing sync is tried for ever")
}

// A node that has not heard a member before, and hears that it has pushed before, lacks
// what that was. One sync brings all that is older than it, and was passed on; of a member
// that it hears itself, perhaps before any other, only a sync with that one does.
func TestFirstPushesTellOfEarlierOnes(t *testing.T) {
	ps := newPushers(4, Policy{})
	for i := 1; i < 4; i++ {
		ps.write(i)
		ps.must(t, 0, i%3+1, ps.write(i)) // passed on
	}
	ps.wait(time.Second)
	with := ps.syncs(0)
	if with < 1 {
		t.Fatalf("a sync with %d", with)
	}
	ps.done(0, with, nil)
	ps.wait(time.Second)
	ps.wantSync(t, 0, -1, "what one sync has brought")
	ps = newPushers(4, Policy{})
	ps.write(2)
	ps.write(3)
	ps.must(t, 0, 2, ps.write(2))
	ps.must(t, 0, 3, ps.write(3))
	for _, want := range []map[int]bool{{2: true, 3: true}, {2: true, 3: true}, {-1: true}} {
		ps.wait(2 * time.Second)
		with := ps.syncs(0)
		if !want[with] {
			t.Errorf("a sync with %d", with)
		}
		if with >= 0 {
			ps.done(0, with, nil)
		}
	}
	ps = newPushers(2, Policy{})
	ps.must(t, 0, 1, ps.write(1))
	ps.wait(time.Second)
	ps.wantSync(t, 0, -1, "the first push of all")
}

// Sets that stay different, because each side declines what the other has, lead to one
// sync, be they told by one member or by many, until either set changes.
func TestDifferencesThatStay(t *testing.T) {
	ps := newPushers(4, Policy{})
	ps.write(1)
	ps.must(t, 2, 1, ps.write(1))
	succeeds(t, ps.machines[2].turn(ps.spaces[2], ps.machines[1]))
	digest := func(i int) []byte {
		ps.spaces[i].Sets()[0].pushes.Changed()
		ps.wait(3 * time.Second)
		return ps.pushes(i)[0]
	}
	ps.must(t, 0, 1, digest(1))
	ps.wait(time.Second)
	ps.wantSync(t, 0, 1, "another digest")
	ps.done(0, 1, fmt.Errorf("declined: %w", syncing.ErrRejected)) // it has brought nothing
	for i := 1; i < 3; i++ {
		ps.must(t, 0, i, digest(i))
		ps.wait(time.Second)
		if with := ps.syncs(0); with >= 0 {
			t.Errorf("the digest that node %d tells leads to a sync with %d, which brings nothing either", i, with)
		}
	}
	must(put(ps.spaces[0], "l", "w"))
	ps.wait(3 * time.Second)
	ps.pushes(0)
	ps.must(t, 0, 1, digest(1))
	ps.wait(time.Second)
	ps.wantSync(t, 0, 1, "a set that has changed")
	// A sync that brings something leaves the rest to another one.
	must(put(ps.spaces[0], "m", "x"))
	ps.done(0, 1, nil)
	ps.wait(3 * time.Second)
	ps.must(t, 0, 1, digest(1))
	ps.wait(time.Second)
	ps.wantSync(t, 0, 1, "after a sync that brought something")
}

// A sync with the peer that passed a digest on, which holds what this node holds, does not
// show that one with the peer that told it would bring nothing.
func TestAnotherPeerSettlesNothing(t *testing.T) {
	ps := newPushers(3, Policy{})
	must(put(ps.spaces[1], "k", "v"))
	ps.pushes(1)
	digest := ps.spaces[1].Sets()[0].Pushes().Digest().Bytes()
	for round := range 2 {
		ps.wait(time.Minute)
		ps.must(t, 0, 2, digest)
		ps.wait(time.Second)
		with, or, _ := ps.spaces[0].Sets()[0].Pushes().NextSync()
		if ps.number(with) != 1 || ps.number(or) != 2 {
			t.Fatalf("round %d: a sync with %d, or with %d", round, ps.number(with), ps.number(or))
		}
		ps.spaces[0].Sets()[0].Pushes().SyncDone(with, or, nil)
	}
}

// A sync that takes long holds up no other for more than a while, and no member is synced
// with twice at a time.
func TestStalledSyncsHoldUpNoOther(t *testing.T) {
	ps := newPushers(3, Policy{})
	for i := 1; i < 3; i++ {
		ps.must(t, 0, i, ps.write(i))
		ps.write(i)
		ps.must(t, 0, i, ps.write(i))
	}
	ps.wait(time.Second)
	with, _, wait := ps.spaces[0].Sets()[0].Pushes().NextSync()
	first := ps.number(with)
	if second := ps.syncs(0); first < 0 || second >= 0 {
		t.Fatalf("syncs with %d and %d at once", first, second)
	}
	if wait <= 0 {
		t.Fatal("the next sync waits for the first one for ever: a driver that begins one is not told when to look again")
	}
	ps.wait(wait)
	if second := ps.syncs(0); second != 3-first {
		t.Fatalf("beside a long sync with %d there is one with %d", first, second)
	}
	ps.write(first)
	ps.must(t, 0, first, ps.write(first))
	ps.wait(time.Minute)
	if again := ps.syncs(0); again >= 0 {
		t.Errorf("a second sync with %d at once", again)
	}
	ps.done(0, first, nil)
	ps.wait(time.Minute)
	if again := ps.syncs(0); again != first {
		t.Errorf("once it is over: a sync with %d", again)
	}
}

// What was heard of a former member is forgotten.
func TestFormerMembersAreNotFollowed(t *testing.T) {
	ps := newPushers(3, Policy{})
	for i := 1; i < 3; i++ {
		ps.write(i)
		ps.must(t, 0, i, ps.write(i))
	}
	succeeds(t, ps.spaces[0].Remove(context.Background(), ps.machines[2].ID, false))
	ps.wait(time.Minute)
	for with := ps.syncs(0); with >= 0; with = ps.syncs(0) {
		if with == 2 {
			t.Error("a sync with a former member")
		}
		ps.done(0, with, nil)
		ps.wait(time.Minute)
	}
}

// A namespace that is opened syncs with the first member to which there is a link, and
// one to which there is a new link hears the digest.
func TestLinks(t *testing.T) {
	ps := newPushers(3, Policy{})
	ps.spaces[0].Sets()[0].Pushes().Linked(ps.machines[2].ID)
	ps.spaces[0].Sets()[0].Pushes().Linked(ps.machines[1].ID)
	ps.wait(time.Second)
	ps.wantSync(t, 0, 2, "at first")
	ps.done(0, 2, reconcile.ErrUnreachable)
	ps.wait(5 * time.Second)
	if got := kinds(ps.pushes(0)); got != "digest" {
		t.Errorf("new links are told %q", got)
	}
	ps.wantSync(t, 0, 2, "after a failure")
	ps.done(0, 2, nil)
	ps.wait(time.Minute)
	ps.spaces[0].Sets()[0].Pushes().Linked(ps.machines[1].ID)
	ps.wait(time.Minute)
	ps.wantSync(t, 0, -1, "a later link")
}

// A member that gets none of a node's pushes hears of them within one and a half of
// Pushing.Busy, though another one writes all the time, so that the sets are never quiet:
// while the node pushes on, and once after the last one.
func TestMissedPushesAreToldWhileOthersWrite(t *testing.T) {
	ps := newPushers(3, Policy{})
	for i := range 2 {
		ps.must(t, i, 2, ps.write(2)) // both have heard of node 2
	}
	ps.wait(time.Second)
	ps.wantSync(t, 0, -1, "at first")
	lastPush, lastTold := ps.elapsed, ps.elapsed
	for told, last := 0, false; told < 4; {
		ps.wait(push.Quiet / 4)
		ps.must(t, 2, 1, ps.write(1))
		if told < 3 || !last {
			last = told == 3
			must(put(ps.spaces[2], "missed", "v"))
			ps.wait(push.Batch)
		}
		for _, p := range ps.pushes(2) {
			if kinds([][]byte{p}) == "records" {
				lastPush = ps.elapsed
				continue // node 0 gets none
			}
			told++
			lastTold = ps.elapsed
			ps.must(t, 0, 2, p)
			ps.wait(push.Pause)
			if with := ps.syncs(0); with != 2 {
				t.Fatalf("after digest %d node 0 syncs with %d", told, with)
			}
			ps.done(0, 2, nil)
		}
		if most := push.Busy*3/2 + push.Quiet; ps.elapsed-lastTold > most {
			t.Fatalf("nothing is told for %s", most)
		}
	}
	for ps.elapsed-lastPush < 4*push.Busy {
		ps.wait(push.Quiet / 4)
		ps.must(t, 2, 1, ps.write(1))
		if all := ps.pushes(2); all != nil {
			t.Fatalf("what was told already is told again: %s", kinds(all))
		}
	}
}
