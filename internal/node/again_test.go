package node

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
)

// restart closes the namespace of a machine, and opens it again as a new process
// does.
func (c *crew) restart(i int) { c.ns[i] = c.machines[i].reopen(c.ns[i], false) }

// A tombstone from the future that was restamped waits for its new version, and not
// for the time that the clock said.
func TestRestampedTombstoneWaits(t *testing.T) {
	c := newCrew(t, 2)
	c.put(0, "deleted", "1")
	c.round()
	c.machines[1].clock = c.machines[1].clock.Add(365 * 24 * time.Hour)
	c.del(1, "deleted")
	c.machines[1].clock = c.machines[0].clock
	if n, err := c.ns[1].Restamp(context.Background()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	succeeds(t, c.machines[1].Tend(context.Background()))
	held := c.ns[1].Sets()[0].Collection()
	if held.Waiting != 1 || held.Oldest.After(c.machines[1].clock.Add(DefaultMaxSkew)) {
		t.Errorf("waiting: %+v", held)
	}
	// The members may know its clock as of then: it says what it waits for.
	c.pass(DefaultMaxSkew)
	c.round()
	c.round()
	held = c.ns[1].Sets()[0].Collection()
	if len(held.Holding) != 1 || held.Holding[0].Member != status.ID(c.machines[0].ID) || !strings.Contains(held.Holding[0].Reason, "restamped") {
		t.Errorf("waiting: %+v", held)
	}
}

// With the next change of the list of members, collection no longer waits until the
// clock says again what it said before a restamp, a year ahead; a restart in between
// changes nothing.
func TestRestampedIsCollected(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		c := newCrew(t, 2)
		c.put(0, "deleted", "1")
		c.round()
		c.machines[1].clock = c.machines[1].clock.Add(365 * 24 * time.Hour)
		c.put(1, "ahead", "1")
		c.machines[1].clock = c.machines[0].clock
		if n, err := c.ns[1].Restamp(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		c.pass(DefaultMaxSkew)
		c.del(1, "deleted")
		for i := range 4 {
			if c.round(); restarts && i < 2 {
				c.restart(1)
			}
		}
		if held := c.ns[1].Sets()[0].Collection(); held.Waiting != 1 || !held.Mark.Before(held.Oldest) {
			t.Errorf("before the list has changed: %+v", held)
		}
		succeeds(t, setRole(c.ns[0], c.machines[1].ID, RoleAdmin))
		c.quiet()
	}
}

// Two members that meet through a third alone collect, too, when the third was
// restarted between its pledge and their next sync with it.
func TestCollectedThroughOneThatRestarts(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "deleted", "1")
	c.round()
	c.del(0, "deleted")
	ctx := context.Background()
	step := func(i int) {
		c.pass(3 * time.Second)
		if err := c.turn(i, 1); err != nil {
			t.Log(err)
		}
	}
	tend := func(i int) {
		c.pass(3 * time.Second)
		succeeds(t, c.machines[i].Tend(ctx))
	}
	tend(0) // sweeps, wants
	tend(0)
	for range 3 {
		step(0)
		step(2)
		tend(1)
		c.restart(1)
		tend(2)
	}
	for range 20 {
		for i := range c.ns {
			if i != 1 {
				step(i)
			}
			tend(i)
		}
	}
	for i := range c.ns {
		if got := c.keys(i); slices.Contains(got, "-deleted") {
			t.Errorf("%d holds %q: %+v", i, got, c.ns[i].Sets()[0].Collection())
		}
	}
}

// A member whose right to write has ended, and that has overwritten an old record
// before it heard, gives its own write up and takes the old record back, although it
// is not later than what has been collected.
func TestSetAsideGivesTheOldRecordBack(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "old", "1")
	c.put(0, "goes", "1")
	c.round()
	c.del(1, "goes")
	c.quiet()
	succeeds(t, setRole(c.ns[0], c.machines[2].ID, RoleRead))
	c.pass(time.Second)
	c.put(2, "old", "too late")
	for range 4 {
		c.round()
	}
	for i := range c.ns {
		c.want(i, "old")
		if r, err := get(c.ns[i], "old"); string(r.Value) != "1" {
			t.Errorf("%d holds %q, %v", i, r.Value, err)
		}
		if c.ns[i].Sets()[0].Collection().Recovering {
			t.Errorf("%d still recovers", i)
		}
	}
	if n := c.ns[2].Sets()[0].Store.KeptCount(dbadapter.KeptSetAside); n != 1 {
		t.Errorf("%d records kept for a person", n)
	}
}

// A key whose tombstone one node has collected, and another one not yet, is put
// again: the put could not name the tombstone, and loses nothing. A deletion that
// the writer had not seen is a conflict as before.
func TestPutAfterCollection(t *testing.T) {
	c := newCrew(t, 2)
	for _, key := range []string{"collected", "expired"} {
		c.put(0, key, "1")
	}
	c.round()
	c.del(1, "collected")
	must(commit(c.ns[1].Sets()[0].Write(Draft{Record: draft("expired", "2").Record, TTL: time.Second})))
	pair := func() {
		c.pass(3 * time.Second)
		if err := c.turn(0, 1); err != nil {
			t.Log(err)
		}
	}
	pair()
	if _, err := c.ns[0].Sets()[0].gc.Sweep(t.Context()); err != nil { // knows what waits
		t.Fatal(err)
	}
	for range 3 { // each says what it holds
		for _, ns := range c.ns {
			succeeds(t, ns.Sets()[0].gc.Pledge(t.Context()))
			pair()
		}
	}
	if swept, err := c.ns[0].Sets()[0].gc.Sweep(t.Context()); err != nil || swept.Collected != 2 {
		t.Fatalf("%+v, %v; %+v", swept, err, c.ns[0].Sets()[0].Collection())
	}
	conflicts := func(want int) {
		t.Helper()
		for _, prefix := range []string{"collected", "expired", "beside"} {
			succeeds(t, third(c.machines[0].sync(c.ns[0], c.machines[1], syncing.Ask{Prefix: []byte(prefix)})))
		}
		if got := c.ns[1].Sets()[0].Store.KeptCount(dbadapter.KeptConflict); got != want {
			t.Errorf("%d conflicts are kept, want %d", got, want)
		}
	}
	if n := len(records(c.ns[1])); n != 2 {
		t.Fatalf("the other node holds %d records", n)
	}
	for _, key := range []string{"collected", "expired"} {
		c.put(0, key, "again")
	}
	conflicts(0)
	c.put(1, "beside", "1")
	c.pass(time.Second)
	c.del(1, "beside")
	c.pass(time.Second)
	c.put(0, "beside", "2")
	conflicts(1)
}
