package node

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
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
		w.t.Fatalf("missing %v", set.tenure.missing())
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
	wantErr(t, second(commit(set.Write(draft("k", "value")))), dbadapter.ErrClosed, "a write to a shard that may be left")
	if _, leave := m.ns.Moves(); !slices.Equal(leave, []*Set{set}) {
		t.Errorf("to be left: %v", leave)
	}
	succeeds(t, m.ns.Leave(set))
	if _, leave := m.ns.Moves(); len(leave) != 0 || m.held(0) != nil {
		t.Errorf("it has left, and is to leave %v", leave)
	}
}

// What an old host adopts of a writer that has lost its right is handed over as well; a shard
// that was left adopts nothing.
func TestAdoptionByOldHost(t *testing.T) {
	w := newMovers(t, 1, 3)
	old, hosts, set := w.old()
	w.put(hosts[0], w.keyIn(0, 0))
	w.handed(old, hosts, set)
	adopt := func() error {
		r := must(set.get([]byte(w.keyIn(0, 0))))
		return set.adopt(t.Context(), &r)
	}
	succeeds(t, adopt())
	if set.tenure.mayEnd() {
		t.Error("it may leave with what it has adopted, and has shown no host")
	}
	w.handed(old, hosts, set)
	succeeds(t, w.all[old].ns.Leave(set))
	wantErr(t, adopt(), dbadapter.ErrClosed, "adopted in a shard that was left")
}

// A shard is taken by the list of members as it is then, and not as it was when the driver
// asked for the moves: what members say under one list, that they do not hold it, stays true.
func TestTakeShardByTheListAsItIs(t *testing.T) {
	w := newMovers(t, 1, 3)
	w.settle()
	layout := must(first(w.all[0].ns.Layout()))
	for i, m := range w.all {
		if layout.Has(0, m.ID) {
			continue
		}
		if _, err := m.ns.TakeShard(t.Context(), 0); !errors.Is(err, reconcile.ErrBusy) {
			t.Errorf("%d takes a shard of which it is no host: %v", i, err)
		}
		if _, kept := m.ns.state.Load().find(0); kept || m.held(0) != nil {
			t.Errorf("%d holds it", i)
		}
	}
}

// A member that holds no shard and has lapsed returns as others do.
func TestLapsedWithoutSets(t *testing.T) {
	w := newMovers(t, 1, 2)
	w.settle()
	m := &mover{machine: newMachine(9), steps: -1}
	m.disk = m.wear
	m.save = func(s *State) error { m.state = s.clone(); return nil }
	m.clock = w.all[0].clock
	joined := must(m.redeem(w.all[0].machine, invite(w.all[0].ns, RoleRead))) // a reader hosts nothing
	m.state = joined.State.clone()
	m.ns = must(m.open(joined.Secret, joined.State))
	w.all = append(w.all, m)
	w.settle()
	succeeds(t, w.all[0].ns.Lapse(t.Context(), m.ID))
	w.settle()
	if held, _ := w.all[0].ns.Members().Member(m.ID); held.Lapsed || len(m.ns.Sets()) != 0 {
		t.Errorf("it holds %d shards, and has lapsed: %t", len(m.ns.Sets()), held.Lapsed)
	}
}

// What a node has left does not keep it from taking writes of now, when it takes a shard.
func TestLeaveHoldsNoTimeBack(t *testing.T) {
	w := newMovers(t, 1, 1)
	left := 0
	for n := range 60 {
		w.pass(time.Second)
		if n == 3 {
			w.join()
			w.join()
		}
		for k := range 8 {
			w.put(0, w.keyIn(placement.Shard(k), n))
		}
		held := len(w.all[0].ns.Sets())
		for i, m := range w.all {
			w.tend(i)
			for j := range w.all {
				w.sync(i, j)
			}
			now := dbadapter.TimestampAt(m.clock.Add(time.Millisecond))
			if p := m.ns.state.Load().Watermark.Pledged; p > now {
				t.Fatalf("round %d: a shard that is taken next admits nothing before %s; it is %s", n, p.Time(), m.clock)
			}
		}
		left += max(0, held-len(w.all[0].ns.Sets()))
	}
	if left == 0 {
		t.Error(fmt.Sprint("it left nothing: ", len(w.all[0].ns.Sets())))
	}
}
