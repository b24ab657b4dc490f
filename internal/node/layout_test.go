package node

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/syncing"
)

// shards makes a namespace of shards, of which the machine is the admin.
func (m *machine) shards(name string) *Namespace {
	secret := m.NewSecret()
	return must(m.open(secret, must(m.FoundShards(secret, name, Policy{}, byHash))))
}

func (ns *Namespace) tended(t *testing.T) {
	t.Helper()
	succeeds(t, second(ns.Tend(t.Context())))
}

// hearing syncs until the other side has the control namespace that this one has, but for
// tables that count no longer, which each drops when it tends.
func hearing(t *testing.T, from *machine, ns *Namespace, to *machine) {
	t.Helper()
	for range 2 {
		if _, _, err := from.syncPart(&ns.Control, to, syncing.Ask{}); err != nil && !errors.Is(err, syncing.ErrRejected) {
			t.Fatal(err)
		}
	}
}

// A member's join tells how the namespace is cut; layouts reach the members with their
// tables, of which only the one that counts is kept.
func TestLayoutReachesMembers(t *testing.T) {
	a, b, c := newMachine(1), newMachine(2), newMachine(3)
	sa := a.shards("notes")
	wantErr(t, third(sa.Layout()), dbadapter.ErrNotFound, "before the first one")
	sa.tended(t)
	first, stated, err := sa.Layout()
	if err != nil || stated.Epoch != 1 || !slices.Equal(first.Hosts(3), []ID{a.ID}) {
		t.Fatalf("the founder's: %+v, %v", stated, err)
	}
	sb := must(b.join(a, invite(sa, RoleAdmin)))
	sc := must(c.join(a, invite(sa, RoleWrite)))
	if sc.Rule().Shards != 16 || sb.ID() != sa.ID() {
		t.Errorf("%+v", sc.Rule())
	}
	hearing(t, a, sa, b)
	for _, m := range []*machine{a, b, c} {
		m.clock = m.clock.Add(time.Second)
	}
	for _, ns := range []*Namespace{sa, sb} {
		ns.tended(t) // hears that hosts came
	}
	for _, m := range []*machine{a, b, c} {
		m.clock = m.clock.Add(time.Minute)
	}
	for _, ns := range []*Namespace{sa, sb, sc} { // two admins state the same, apart
		ns.tended(t)
	}
	hearing(t, a, sa, b)
	hearing(t, c, sc, a)
	hearing(t, b, sb, c)
	want, stated, err := sa.Layout()
	if err != nil || stated.Epoch != 2 || !want.Suits(placement.HostsOf(sa.Members().List, func(ID) bool { return true })) {
		t.Fatalf("%+v, %v", stated, err)
	}
	for _, ns := range []*Namespace{sa, sb, sc} {
		ns.tended(t)
		got, by, err := ns.Layout()
		if err != nil || by != stated || got.Table() != want.Table() || len(got.Hosts(0)) != 2 {
			t.Errorf("%+v, %v", by, err)
		}
		tables := 0
		for _, r := range controlRecords(ns) {
			if r.Key[0] == kindTable {
				tables++
			}
		}
		if tables != 1 {
			t.Errorf("%d tables are kept", tables)
		}
	}
}

// A founder holds its shards when it was tended once, and is sure at once of what they do not
// hold: no other node can have held anything.
func TestFounderHoldsAtOnce(t *testing.T) {
	sa := newMachine(1).shards("notes")
	sa.tended(t)
	take, _ := sa.Moves()
	for _, shard := range take {
		if set := must(sa.TakeShard(t.Context(), shard)); set.Recovers() {
			t.Errorf("it is not sure of shard %d: %+v", shard, set.Collection())
		}
	}
	if len(take) != byHash.Shards {
		t.Errorf("it takes %d shards of %d", len(take), byHash.Shards)
	}
}

// A table that no statement names, a damaged one, and one that is dressed up stay outside.
func TestTableAdmission(t *testing.T) {
	a := newMachine(1)
	sa := a.shards("notes")
	sa.tended(t)
	l, _, err := sa.Layout()
	if err != nil {
		t.Fatal(err)
	}
	good := must(sa.Control.table(l.Value()))
	other := must(sa.Control.table(must(placement.Plan(byHash, []ID{idOf(7)})).Value()))
	edited := func(edit func(*dbadapter.Record)) dbadapter.Hashed {
		r := good.Record.Clone()
		edit(&r)
		return must(dbadapter.Hash(sa.Control.Keys.Hasher, r))
	}
	for name, c := range map[string]struct {
		record dbadapter.Hashed
		in     bool
	}{
		"good":           {good, true},
		"another":        {other, false},
		"another value":  {edited(func(r *dbadapter.Record) { r.Value = other.Value }), false},
		"another key":    {edited(func(r *dbadapter.Record) { r.Key = tableKey(roster.Table{1}) }), false},
		"a short key":    {edited(func(r *dbadapter.Record) { r.Key = r.Key[:1] }), false},
		"a later one":    {edited(func(r *dbadapter.Record) { r.Version.Clock++ }), false},
		"another writer": {edited(func(r *dbadapter.Record) { r.Version.Writer = 7 }), false},
		"deleted":        {edited(func(r *dbadapter.Record) { r.Value, r.Deleted = nil, true }), false},
	} {
		verdicts, err := sa.Admit(t.Context(), idOf(3), []dbadapter.Hashed{c.record})
		if err != nil || (verdicts[0].Reason == 0) != c.in {
			t.Errorf("%s: %+v, %v", name, verdicts[0], err)
		}
	}
}

// A namespace of one shard has no layout, and takes no tables.
func TestOneShard(t *testing.T) {
	ns := newMachine(1).create("notes", Policy{})
	ns.tended(t)
	if _, _, err := ns.Layout(); !errors.Is(err, ErrOneShard) || !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// Rows never go back: a node goes on by a layout that has become void, also after a restart, and takes
// none that is void when it first hears of it. An admin's node that sees it states the next one, which
// is later, and in which each row is new.
func TestRowsNeverGoBack(t *testing.T) {
	w := newMovers(t, 1, 4)
	w.settle()
	w.settled()
	hear := func(all ...int) {
		for range 3 {
			for _, i := range all {
				for _, j := range all {
					if i != j {
						_, _, _ = w.all[i].syncPart(&w.all[i].ns.Control, w.all[j].machine, syncing.Ask{})
					}
				}
			}
		}
	}
	_, before, _ := w.all[0].ns.Layout()
	// Admin 1 has member 3 host no more, apart from its own removal; member 2 hears of it.
	succeeds(t, w.all[1].ns.SetRole(t.Context(), w.all[3].ID, RoleRead, time.Time{}, false))
	succeeds(t, w.all[0].ns.Remove(t.Context(), w.all[1].ID, false))
	for range 8 {
		w.pass(10 * time.Second)
		must(w.all[1].ns.Tend(t.Context()))
	}
	hear(1, 2)
	lost, apart, _ := w.all[2].ns.Layout()
	if apart.Epoch != before.Epoch+1 || apart.By != w.all[1].ID {
		t.Fatalf("member 2 goes by %+v", apart)
	}
	hear(0, 2)
	if list := w.all[0].ns.Members(); !list.Overtaken() || list.Has(w.all[1].ID, RoleRead) {
		t.Fatal("the layout is not void")
	}
	for _, c := range []struct {
		i    int
		want roster.StatedLayout
	}{{0, before}, {2, apart}} {
		if _, is, _ := w.all[c.i].ns.Layout(); is != c.want {
			t.Errorf("node %d goes by %+v, want %+v", c.i, is, c.want)
		}
	}
	w.all[2].restart(t)
	if _, is, _ := w.all[2].ns.Layout(); is != apart {
		t.Errorf("after a restart it goes by %+v, want %+v", is, apart)
	}
	for range 8 {
		w.pass(10 * time.Second)
		must(w.all[0].ns.Tend(t.Context()))
	}
	hear(0, 2)
	next, is, _ := w.all[2].ns.Layout()
	if is.By != w.all[0].ID || is.Epoch <= apart.Epoch {
		t.Fatalf("the next layout is %+v", is)
	}
	for s := range placement.Shard(w.rule.Shards) {
		if row := next.Row(s); row.Epoch != is.Epoch || row.Epoch <= lost.Row(s).Epoch {
			t.Errorf("shard %d goes by a row of epoch %d", s, row.Epoch)
		}
	}
}
