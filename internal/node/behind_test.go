package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A sync between a node that has collected and one that has not moves nothing,
// whichever begins it: the one that is behind collects, and the two are equal.
func TestCollectedOnOneSide(t *testing.T) {
	for first := range 2 {
		c := newCrew(t, 2)
		for i := range 20 {
			c.put(0, fmt.Sprint("k", i), "1")
		}
		c.round()
		for i := range 10 {
			c.del(0, fmt.Sprint("k", 10+i))
		}
		c.agree()
		if done := must(c.ns[0].Sets()[0].gc.Sweep(context.Background())); done.Collected != 10 {
			t.Fatalf("%+v; %+v", done, c.ns[0].Sets()[0].Collection())
		}
		if here, there := len(c.keys(0)), len(c.keys(1)); here != 10 || there != 20 {
			t.Fatalf("%d and %d records", here, there)
		}
		var last error
		conversations := 0
		for range 2 { // a busy peer is asked again
			sync := &call{machine: c.machines[first], other: c.machines[1-first], part: &c.ns[first].Sets()[0].Part}
			_, last = sync.part.Plan(sync.other.ID, syncing.Ask{}).Run(t.Context(), sync, nil)
			for _, held := range sync.held {
				if held.Control {
					continue
				}
				conversations++
				for _, r := range []reconcile.Report{held.mine, held.theirs} {
					// The first cells may show the ten tombstones before the peer breaks off, and nothing else.
					shown := held.err != nil && r.Differences() == 10
					if r.Sent+r.Applied+r.Rejected > 0 || r.Differences() > 0 && !shown || r.RecordBytes > 0 || r.Verified != (held.err == nil) {
						t.Errorf("node %d began, and: %+v", first, r)
					}
				}
			}
			if !errors.Is(last, reconcile.ErrBusy) {
				break
			}
		}
		if last != nil || conversations != 2 {
			t.Errorf("node %d began: %v after %d conversations", first, last, conversations)
		}
		if fmt.Sprint(c.keys(0)) != fmt.Sprint(c.keys(1)) {
			t.Errorf("%v, %v", c.keys(0), c.keys(1))
		}
		for i, ns := range c.ns {
			if left := ns.Sets()[0].Left(); left != (status.Swept{Collected: 10}) {
				t.Errorf("node %d counts %+v", i, left)
			}
		}
	}
}

// agree lets two nodes sync and pledge until both are past what was written. It sweeps
// nothing.
func (c *crew) agree() {
	c.t.Helper()
	for range 8 {
		c.pass(time.Second)
		for i := range 2 {
			succeeds(c.t, c.turn(i, 1-i))
			succeeds(c.t, c.ns[i].Sets()[0].gc.Pledge(context.Background()))
		}
	}
}

// A tombstone that comes to a node that has collected it is kept out.
func TestCollectedTombstoneArrives(t *testing.T) {
	c := newCrew(t, 2)
	c.put(0, "a", "1")
	c.put(0, "b", "1")
	c.round()
	c.del(0, "a")
	c.agree()
	if done := must(c.ns[0].Sets()[0].gc.Sweep(context.Background())); done.Collected != 1 {
		t.Fatalf("%+v; %+v", done, c.ns[0].Sets()[0].Collection())
	}
	c.want(0, "b")
	c.want(1, "-a", "b")
	tombstone := must(dbadapter.Hash(c.ns[0].Sets()[0].Keys.Hasher, records(c.ns[1])[0]))
	verdicts := must(c.ns[0].Sets()[0].Admit(t.Context(), c.machines[1].ID, 0, noTerm, []dbadapter.Hashed{tombstone})())
	if verdicts[0].Reason != wire.ReasonFloor {
		t.Errorf("%+v", verdicts)
	}
	c.want(0, "b")
	if refused := c.ns[0].Sets()[0].Rejected(); len(refused) > 0 { // a person has nothing to do about a tombstone
		t.Errorf("listed as refused: %+v", refused)
	}
}

// A pledge that was made under an earlier list counts for nothing: the first one under the next
// list does not wait for its time.
func TestFirstPledgeUnderAListDoesNotWait(t *testing.T) {
	c := newCrew(t, 2)
	set := c.ns[0].Sets()[0]
	c.machines[0].Interval = time.Hour
	c.put(0, "a", "1")
	c.del(0, "a")
	pledge := func() dbadapter.Timestamp {
		t.Helper()
		succeeds(t, c.machines[0].Tend(t.Context()))
		held := must(set.ns.Control.Held(set.pledgeKey()))
		if held == nil {
			t.Fatal("it has said nothing")
		}
		return held.Version.Clock
	}
	first := pledge()
	c.round()
	c.put(0, "b", "1")
	c.del(0, "b")
	if next := pledge(); next != first {
		t.Error("under the same list it does not wait")
	}
	succeeds(t, setRole(c.ns[0], idOf(9), RoleRead))
	if next := pledge(); next == first {
		t.Error("under the next list it waits")
	}
}

// What a node has collected the next one can prove at once, though neither is to pledge again for
// long: the one that collects says first that it holds all, and the other one hears of that.
func TestCollectedIsProvenAtOnce(t *testing.T) {
	c := newCrew(t, 2)
	tend := func(i int) {
		t.Helper()
		succeeds(t, c.machines[i].Tend(t.Context()))
	}
	turn := func() error { // that the second one begins
		c.pass(time.Second)
		return c.machines[1].turn(c.ns[1], c.machines[0])
	}
	c.put(0, "a", "1")
	c.put(0, "b", "1")
	for _, m := range c.machines {
		m.Interval = time.Hour
	}
	succeeds(t, turn())
	c.del(0, "a")
	tend(0) // it asks the other one to promise, and has not heard of it since
	succeeds(t, turn())
	tend(1)
	for range 2 {
		succeeds(t, turn())
	}
	tend(0)
	c.want(0, "b")
	c.want(1, "-a", "b")
	// The first one begins with the records, since its own list has not changed.
	for range 2 {
		if err := turn(); err != nil && !errors.Is(err, syncing.ErrRejected) && !errors.Is(err, reconcile.ErrBusy) {
			t.Fatal(err)
		}
	}
	c.want(1, "b")
	wantErr(t, turn(), nil, "the two are not found equal")
}

// Partners are the peers that can be reached, with all that is shared with each. They are a
// function of their input: the same peers have their turns in the same order.
func TestPartners(t *testing.T) {
	var orders [2]string
	for i := range orders {
		m := newMachine(1)
		for n := range 5 {
			ns := must(m.open([32]byte{byte(n)}, must(m.Found([32]byte{byte(n)}, fmt.Sprint(n), Policy{}))))
			for seed := 2; seed < 10-n; seed++ {
				succeeds(t, setRole(ns, idOf(seed), RoleRead))
			}
		}
		partners := m.Partners(func(id ID) bool { return id != idOf(2) })
		parts := 0
		for _, turn := range partners {
			orders[i] += turn.Remote.String()
			parts += len(turn.Parts)
			for _, p := range turn.Parts {
				orders[i] += " " + p.ns.Members().Name()
			}
		}
		if len(partners) != 7 || parts != 5+5+5+4+3+2+1 {
			t.Errorf("%d partners, %d parts", len(partners), parts)
		}
	}
	if orders[0] != orders[1] {
		t.Errorf("two equal rounds:\n%s\n%s", orders[0], orders[1])
	}
}

// A shard seeks while it has still to be found equal under its row: its move waits for syncs.
func TestMovesSeek(t *testing.T) {
	c := newShardCrew(t, []placement.Shard{0}, []placement.Shard{0})
	m, set, remote := c.machines[0], c.set(0, 0), c.machines[1].ID
	if set.Seeks() || m.Seeking() {
		t.Error("it seeks at rest")
	}
	set.tenure.goes(&quorum.Row{Epoch: 2, Old: []ID{remote}, New: []ID{m.ID}})
	if !set.Seeks() || !m.Seeking() {
		t.Error("a shard that moves does not seek")
	}
}
