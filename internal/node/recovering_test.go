package node

import (
	"context"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
)

// A copy from before that is started finds what its own pledge says, promises
// nothing until it has caught up, and sets aside what was deleted meanwhile.
func TestRestoredCopy(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "deleted", "1")
	c.put(0, "stays", "1")
	c.round()
	restore := c.copyOf(2)
	c.put(1, "later", "1")
	c.del(0, "deleted")
	c.quiet()
	c.want(1, "later", "stays")

	restore()
	c.want(2, "deleted", "stays")
	succeeds(t, c.turn(2, 0))
	c.round()
	c.round()
	for i := range c.ns {
		c.want(i, "later", "stays")
	}
	if c.ns[2].Sets()[0].Collection().Recovering {
		t.Error("it still recovers")
	}
	kept := 0
	for k := range c.ns[2].Sets()[0].Store.Kept(context.Background()) {
		if string(k.Record.Key) == "deleted" {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("%d records kept for a person", kept)
	}
}

// A node that lapsed, and whose other members have all gone, takes part again by
// itself: there is no other one to catch up with.
func TestLapsedAlone(t *testing.T) {
	c := newCrew(t, 1)
	c.join(1, RoleAdmin)
	c.round()
	c.put(0, "deleted", "1")
	succeeds(t, c.ns[1].Lapse(t.Context(), c.machines[0].ID))
	succeeds(t, c.ns[1].Remove(t.Context(), c.machines[1].ID, false))
	_ = c.turn(0, 1) // node 0 hears of both
	c.del(0, "deleted")
	for range 4 {
		c.round(0)
	}
	if m, known := c.ns[0].Members().Member(c.machines[0].ID); !known || m.Lapsed {
		t.Errorf("%+v", m)
	}
	c.want(0)
}

// copyOf copies a node's disk. restore puts the copy in its place.
func (c *crew) copyOf(i int) (restore func()) {
	ns := c.ns[i]
	state, data, control := ns.state.Load().clone(), records(ns), saidRecords(ns)
	return func() {
		m := newMachine(i + 1)
		m.clock = c.machines[i].clock
		restored := must(m.open(ns.Sets()[0].Keys.Secret, state))
		fill(c.t, &restored.Sets()[0].Part, data)
		fill(c.t, &restored.Control, control)
		must(0, restored.Close())
		m.Forget(restored)
		c.machines[i], c.ns[i] = m, must(m.open(ns.Sets()[0].Keys.Secret, state))
	}
}

func saidRecords(ns *Namespace) (out []dbadapter.Record) {
	snap := must(ns.Control.Store.Snapshot())
	defer snap.Close()
	for r, err := range snap.Scan(context.Background(), nil, nil) {
		out = append(out, must(r, err).Record)
	}
	return out
}

// fill puts records into a part's store, whatever the rules.
func fill(t *testing.T, p *Part, list []dbadapter.Record) {
	t.Helper()
	for _, r := range list {
		h := must(dbadapter.Hash(p.Keys.Hasher, r))
		succeeds(t, second(p.Store.Apply(context.Background(), []dbadapter.Write{{Record: h}})))
	}
}

// A member that has lapsed returns also where the only member left has been made a
// reader since it collected: no floor of one that may write is left to believe.
func TestLapsedMemberReturnsToAReader(t *testing.T) {
	c := newCrew(t, 2)
	succeeds(t, setRole(c.ns[0], c.machines[1].ID, RoleAdmin))
	c.put(0, "stays", "1")
	c.put(0, "deleted", "1")
	c.round()
	c.put(0, "unheard", "of")
	c.pass(time.Minute)
	c.del(1, "deleted")
	succeeds(t, c.ns[1].Lapse(context.Background(), c.machines[0].ID))
	c.pass(time.Second)
	must(c.ns[1].Sets()[0].Collect(context.Background()))
	c.want(1, "stays")
	succeeds(t, third(c.machines[0].converse(c.ns[0], c.machines[1], syncing.Ask{Control: true})))
	succeeds(t, setRole(c.ns[0], c.machines[1].ID, RoleRead))
	for range 6 {
		c.round()
	}
	for i := range c.ns {
		c.want(i, "stays")
		if m, _ := c.ns[i].Members().Member(c.machines[0].ID); m.Lapsed {
			t.Errorf("%d has not heard that the member is back", i)
		}
	}
	if n := c.ns[0].Sets()[0].Store.KeptCount(dbadapter.KeptSetAside); n == 0 {
		t.Error("the member's own record is not kept for a person")
	}
}

// The only member that may write is restored from a copy. What was deleted since is
// gone from it, too, though only a reader tells.
func TestRestoredCopyAmongReaders(t *testing.T) {
	c := newCrew(t, 1)
	c.join(1, RoleRead)
	c.put(0, "deleted", "1")
	c.put(0, "stays", "1")
	c.round()
	restore := c.copyOf(0)
	c.del(0, "deleted")
	c.quiet()
	c.want(1, "stays")

	restore()
	for range 6 {
		c.round()
	}
	for i := range c.ns {
		c.want(i, "stays")
	}
	if c.ns[0].Sets()[0].Collection().Recovering {
		t.Error("it still recovers")
	}
	if n := c.ns[0].Sets()[0].Store.KeptCount(dbadapter.KeptSetAside); n != 1 {
		t.Errorf("%d records kept for a person", n)
	}
}
