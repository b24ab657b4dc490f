package node

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// old makes one machine hold shard 0, of which it is no host; the hosts are those of the
// others that are.
func (w *movers) old() (old int, hosts []int, set *Set) {
	w.t.Helper()
	w.settle()
	layout := must(first(w.all[0].ns.Layout()))
	for i, m := range w.all {
		if layout.Has(0, m.ID) {
			hosts = append(hosts, i)
		} else {
			old = i
		}
	}
	return old, hosts, w.all[old].lateHost(w.t, 0)
}

// lateHost makes a machine hold a shard, of which it is a host no longer.
func (m *mover) lateHost(t *testing.T, shard placement.Shard) *Set {
	t.Helper()
	now := m.ns.placed.Load()
	other := must(placement.Plan(m.ns.rule, []ID{idOf(50)}))
	none := func(placement.Shard, quorum.Name, ID) bool { return false }
	next := must(placement.Next(m.ns.rule, other, 2, false, []ID{m.ID}, none))
	m.ns.placed.Store(&placed{stated: now.stated, layout: next})
	set := must(m.ns.TakeShard(t.Context(), shard))
	m.ns.placed.Store(now)
	m.ns.rehost()
	return set
}

// keyIn is the n-th key of a shard.
func (w *movers) keyIn(shard placement.Shard, n int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("key", i); w.home(key) == shard {
			if n--; n < 0 {
				return key
			}
		}
	}
}

// A shard that is handed over goes, and its kept log stays with the node until its last entry is
// forgotten, also over a restart, and while the node is a host of the shard again. (15)
func TestKeptLogStays(t *testing.T) {
	w := newMovers(t, 1, 3)
	old, hosts, set := w.old()
	m, key := w.all[old], w.keyIn(0, 0)
	// Two hosts write at once, and the old one sees that first.
	for _, i := range hosts {
		must(commit(w.all[i].held(0).Write(draft(key, fmt.Sprint("of ", i)))))
		w.sync(old, i)
		w.pass(1e9)
	}
	w.handed(old, hosts, set)
	kept := func() (seqs []uint64) {
		t.Helper()
		for k, err := range m.ns.Kept(t.Context(), dbadapter.KeptConflict, 0) {
			if err != nil || k.Why != dbadapter.KeptConflict || string(k.Record.Key) != key {
				t.Errorf("%+v, %v", k, err)
			}
			seqs = append(seqs, k.Seq)
		}
		return seqs
	}
	records := func() int { return len(must(set.some(t.Context()))) }
	leave := func() {
		t.Helper()
		succeeds(t, m.ns.Leave(set))
		wantErr(t, second(m.ns.TakeShard(t.Context(), 0)), reconcile.ErrBusy, "held while its records are there")
		if len(kept()) != 1 {
			t.Error("the entry is not listed while the records are deleted")
		}
		succeeds(t, m.ns.Discard(t.Context(), set))
		wantErr(t, second(set.Store.Snapshot()), dbadapter.ErrClosed, "who reads the shard that was left")
		set = m.ns.Logs()[0]
		if all := m.ns.Discards(); len(kept()) != 1 || len(all) != 0 || records() != 0 {
			t.Errorf("%d entries, %d records, to be discarded: %v", len(kept()), records(), all)
		}
	}
	leave()
	m.restart(t)
	if len(kept()) != 1 || m.held(0) != nil || len(m.ns.Discards()) != 1 {
		t.Errorf("after a restart: %d entries, held: %t", len(kept()), m.held(0) != nil)
	}
	for _, set := range m.ns.Discards() { // it is not known yet that they are empty
		succeeds(t, m.ns.Discard(t.Context(), set))
	}
	set = m.lateHost(t, 0) // it is a host again
	if len(kept()) != 1 || records() != 0 || !set.Recovers() {
		t.Errorf("a host again: %d entries, %d records, whole: %t", len(kept()), records(), !set.Recovers())
	}
	w.handed(old, hosts, set)
	if records() == 0 {
		t.Error("it has no records after syncs")
	}
	leave()
	succeeds(t, m.ns.ForgetKept(t.Context(), kept()...))
	if all := m.ns.Discards(); !slices.Equal(all, []*Set{set}) {
		t.Errorf("to be discarded once the last entry is forgotten: %v", all)
	}
	succeeds(t, m.ns.Discard(t.Context(), set))
	if _, there := m.ns.state.Load().find(0); there || len(m.ns.Logs()) != len(m.ns.Sets()) {
		t.Error("the shard is there still")
	}
}

// The driver hears of each change of the members that a set is pushed to: with a table of the
// layout, and with what a member says that it holds.
func TestAudienceFollowsHolders(t *testing.T) {
	w := newMovers(t, 1, 3)
	old, hosts, _ := w.old()
	m := w.all[hosts[0]]
	set, told := m.held(0), false
	m.Pushable = func(s *Set) { told = told || s == set }
	changes := func(what string, change func()) {
		t.Helper()
		before := m.ns.Audiences()
		told = false
		if change(); m.ns.Audiences() == before || !told {
			t.Errorf("%s: it changes: %t, and is told: %t", what, m.ns.Audiences() != before, told)
		}
	}
	changes("a table", func() {
		defer m.ns.Hold().Release()
		m.ns.placed.Store(&placed{})
		succeeds(t, m.ns.place())
	})
	changes("what a member holds", func() {
		succeeds(t, second(w.all[old].ns.tellShards(t.Context(), 0)))
		w.sync(old, hosts[0])
	})
}

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
