package node

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
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
	m.ns.updating.Lock()
	now := m.ns.placed.Load()
	other := must(placement.Plan(m.ns.rule, []placement.Host{{ID: idOf(50), Weight: 1}}))
	none := func(placement.Shard, quorum.Name, ID) bool { return false }
	next := must(placement.Next(m.ns.rule, other, 2, false, []placement.Host{{ID: m.ID, Weight: 1}}, none))
	m.ns.placed.Store(&placed{stated: now.stated, layout: next})
	m.ns.updating.Unlock()
	set := must(m.ns.TakeShard(t.Context(), shard))
	m.ns.updating.Lock()
	defer m.ns.updating.Unlock()
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

// What stands in a shard's kept log is on this node alone: the shard is held on until each
// entry was decided.
func TestKeptEntriesHoldShard(t *testing.T) {
	w := newMovers(t, 1, 3)
	old, hosts, set := w.old()
	m, key := w.all[old], w.keyIn(0, 0)
	// Two hosts write at once, and the old one sees that first.
	for _, i := range hosts {
		must(commit(w.all[i].held(0).Write(draft(key, fmt.Sprint("of ", i)))))
		w.sync(old, i)
		w.pass(1e9)
	}
	equal := func() {
		for range 2 {
			for _, i := range hosts {
				w.sync(old, i)
			}
		}
	}
	equal()
	if !set.tenure.mayEnd() || set.Kept() != 1 {
		t.Fatalf("missing %v; %d entries are kept", set.tenure.missing(), set.Kept())
	}
	if _, leave := m.ns.Moves(); len(leave) != 0 {
		t.Error("a shard with a conflict that is listed here alone is to be left")
	}
	if held := m.ns.Lingering(); !slices.Equal(held, []*Set{set}) {
		t.Errorf("held on for what is kept: %v", held)
	}
	if err := m.ns.Leave(set); !errors.Is(err, reconcile.ErrBusy) {
		t.Errorf("it left: %v", err)
	}
	m.restart(t)
	set = m.held(0)
	var seqs []uint64
	for k, err := range set.Store.Kept(t.Context()) {
		if err != nil || k.Why != dbadapter.KeptConflict || string(k.Record.Key) != key {
			t.Errorf("%+v, %v", k, err)
		}
		seqs = append(seqs, k.Seq)
	}
	if err := set.Store.Forget(t.Context(), seqs...); err != nil || len(seqs) != 1 {
		t.Fatalf("%v, %v", seqs, err)
	}
	equal()
	if _, leave := m.ns.Moves(); !slices.Equal(leave, []*Set{set}) || len(m.ns.Lingering()) != 0 {
		t.Errorf("once it is decided: %v, %v", leave, m.ns.Lingering())
	}
	if err := m.ns.Leave(set); err != nil {
		t.Error(err)
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
		m.ns.updating.Lock()
		defer m.ns.updating.Unlock()
		m.ns.placed.Store(&placed{})
		if err := m.ns.place(); err != nil {
			t.Error(err)
		}
	})
	changes("what a member holds", func() {
		if _, err := w.all[old].ns.tellShards(t.Context(), 0); err != nil {
			t.Error(err)
		}
		w.sync(old, hosts[0])
	})
}
