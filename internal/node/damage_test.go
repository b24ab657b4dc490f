package node

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// spoil makes what a namespace keeps of its records wrong: a pair that is not there is
// in its live sketch, or the sum of a range is not that of its records.
func spoil(ns *Namespace, sketch bool) {
	_, _, seq := ns.Sets()[0].Live.State()
	c := dbadapter.Change{Seq: seq, Index: 5 << 30}
	if c.Delta = (dbadapter.Digest{1, 2}); sketch {
		c.New, c.Delta = dbadapter.Checksum(rateless.Seal(5<<30, 77)), dbadapter.Digest{}
	}
	ns.Sets()[0].Live.Observe([]dbadapter.Change{c})
}

// reopen restarts the process of a node: in order, or by kill -9.
func (m *machine) reopen(ns *Namespace, inOrder bool) *Namespace {
	if inOrder {
		must(0, ns.Rest(context.Background()))
	}
	return m.reopened(ns, func(*State) {})
}

// What a peer's cells give rise to costs a bounded share of the time: an audit that finds
// nothing keeps the next one waiting, one that finds something does not.
func TestAuditsThatPeersGiveRiseTo(t *testing.T) {
	ms, sets := newCrowded(2)
	now := time.Duration(0)
	ms[1].Elapsed = func() time.Duration { return now }
	for i := range 300 {
		must(put(sets[0], fmt.Sprint("k", i), "v"))
	}
	spoilt := func() {
		t.Helper()
		must(put(sets[0], "k", fmt.Sprint(now)))
		if r, _, err := ms[1].sync(sets[1], ms[0], syncing.Ask{}); err != nil || !r.Repair.Sketch {
			t.Fatalf("%v, %+v", err, r.Repair)
		}
	}
	audit := func() bool {
		t.Helper()
		began := now
		d, _, err := sets[1].Audit(t.Context(), func() error { now = began + time.Minute; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return d.Any()
	}
	succeeds(t, third(ms[1].sync(sets[1], ms[0], syncing.Ask{})))
	spoil(sets[0], true)
	if spoilt(); !sets[1].AuditDue() || audit() || sets[1].AuditDue() {
		t.Error("the first audit is not due, has found something, or is due again")
	}
	if spoilt(); sets[1].AuditDue() {
		t.Error("the second one is due at once")
	}
	if now += auditPause * time.Minute; !sets[1].AuditDue() {
		t.Error("it is never due")
	}
	spoil(sets[1], true) // the same: no sync tells them apart now
	if !audit() {
		t.Error("an audit has not found the damage")
	}
	if spoilt(); !sets[1].AuditDue() {
		t.Error("after one that has found something the next is not due")
	}
}

// A sum that was kept wrong is found inside a part of a large sync, replaced for good,
// and holds no other part up; a damaged sketch leads to the parts all the same.
func TestDamageInsideAPart(t *testing.T) {
	for _, at := range []int{0, 1} {
		c := halves(t, 300)
		for _, m := range c.machines {
			m.Summaries.Least = -1
		}
		spoil(c.ns[at], false)
		spoil(c.ns[at], true)
		mine, theirs, err := c.sync(syncing.Ask{})
		if err != nil || !mine.Verified || mine.Method != wire.MethodParts || mine.Applied != 300 || mine.Sent != 300 || !c.equal() {
			t.Fatalf("%v, %+v", err, mine)
		}
		if mine.Repair.Ranges == 0 || len(mine.Listed) == 0 || mine.Listed[0] != 5 || (mine.Repair.Digests > 0) != (at == 0) || mine.Repair.Left > 0 {
			t.Errorf("node %d: it found %+v in %v, and the other %+v", at, mine.Repair, mine.Listed, theirs.Repair)
		}
		if !c.ns[at].AuditDue() {
			t.Error("no audit is due where the sum was wrong")
		}
		if d, _, err := c.ns[at].Audit(t.Context(), nil); err != nil || d.Ranges != 0 || d.Cells == 0 {
			t.Errorf("what is left for the audit is %v, %v", d, err)
		}
		for i, m := range c.machines {
			succeeds(t, m.KeepSummaries(t.Context(), time.Minute))
			c.ns[i] = m.reopen(c.ns[i], false)
		}
		c.put(0, "after", "1")
		if mine, theirs, err := c.sync(syncing.Ask{}); err != nil || !mine.Verified || mine.Repair.Needed() || theirs.Repair.Needed() {
			t.Errorf("after a restart: %v, %+v", err, mine)
		}
	}
}

// relogged is a store whose change logs have other ids than when it was last opened, as one
// that was restored from a dump.
type relogged struct{ dbadapter.Namespace }

func (r relogged) Log() dbadapter.LogID { return r.Namespace.Log() + 1 }

// A namespace whose store was restored beside its state recovers, durably, and lacks nothing
// again once it was found equal with a member. One whose store is as it was does not.
func TestStoreRestoredBesideState(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "one", "1")
	c.round()
	c.quiet()
	reopen := func(restored bool) *State {
		m, ns := c.machines[2], c.ns[2]
		state := must(DecodeState(must(ns.state.Load().Encode())))
		succeeds(t, ns.Close())
		m.Forget(ns)
		var saved *State
		m.save = func(s *State) error { saved = s.clone(); return nil }
		m.restored = restored
		c.ns[2] = must(m.open(ns.Sets()[0].Keys.Secret, state))
		m.save = nil
		if restored && saved == nil {
			t.Fatal("the state was not saved")
		}
		return c.ns[2].state.Load()
	}
	if s := reopen(false); s.Watermark.Recovering || c.ns[2].OtherStore() {
		t.Error("opened again, it recovers")
	}
	if s := reopen(true); !s.Watermark.Recovering || !c.ns[2].OtherStore() {
		t.Error("with a store that was restored, it does not recover")
	}
	if !c.ns[2].Sets()[0].Collection().Recovering {
		t.Error("the collection does not wait for the recovery")
	}
	for range 3 {
		c.round()
	}
	if c.ns[2].Sets()[0].Collection().Recovering {
		t.Error("it still recovers")
	}
}

// A member that only the writer reaches, and whose streams break, hears the digest of what
// the writer pushes, though another member has told the writer the same digest first.
func TestDigestsOfAMemberThatOneNodeReaches(t *testing.T) {
	ps := newPushers(3, Policy{})
	id := func(i int) ID { return ps.machines[i].ID }
	lines := []*push.Lines{
		{Taking: map[ID][]ID{id(1): {id(0)}}, Broken: []ID{id(2)}},
		{Taking: map[ID][]ID{id(0): {id(1)}}},
	}
	audience, _ := ps.spaces[0].Audience()
	for round := range 20 { // which of the two tells the digest first is random
		must(put(ps.spaces[0], "k", ps.elapsed.String()))
		told := false
		for range 4000 {
			ps.wait(5 * time.Millisecond)
			for i, l := range lines {
				set := ps.spaces[i].Sets()[0]
				for m, _ := set.Pushes().Next(); m != nil; m, _ = set.Pushes().Next() {
					to, whole := set.Pushes().Direct(m, audience, l)
					told = told || i == 0 && !whole && kinds([][]byte{m.Bytes()}) == "digest"
					for _, other := range to {
						there := ps.spaces[ps.number(other)].Sets()[0]
						a, verdict, err := there.Arrived(id(i), m.Direct(), true)
						if verdict != push.Taken || err != nil {
							t.Fatal(verdict, err)
						}
						succeeds(t, there.CommitArrivals(t.Context(), []*Arrival{a}))
					}
				}
			}
		}
		if !told {
			t.Fatalf("write %d: no digest went over the mesh in 20 s", round)
		}
	}
}

// mayLack makes a namespace one that has lost records, while it is open.
func mayLack(ns *Namespace) error {
	for _, set := range ns.Sets() {
		set.tenure.mu.Lock()
		set.tenure.host.Lose()
		set.tenure.host.LostUntil = ns.node.elapsed() + quorum.LongestDeadline
		set.tenure.mu.Unlock()
		if err := set.gc.Update(func(w *watermark.Watermark) bool { w.Recover(true); return true }); err != nil {
			return err
		}
	}
	return nil
}

// A state adds losses up, and names the shards; the number is not known once one of them is
// not, and the time is that of the first.
func TestLose(t *testing.T) {
	first := time.UnixMilli(1_800_000_000_000)
	for _, c := range []struct {
		missing [][]int64
		records int64
		shards  []placement.Shard
	}{
		{[][]int64{{0, 0, 0}}, 0, nil},
		{[][]int64{{2, 0, 1}}, 3, []placement.Shard{4}},
		{[][]int64{{0, 3, 0}, {1, 1, 0}}, 5, []placement.Shard{4, 7}},
		{[][]int64{{-1, 0, 5}, {0, 2, 0}}, -1, []placement.Shard{4, 7}},
		{[][]int64{{0, 2, -1}}, -1, []placement.Shard{7}},
	} {
		s := &State{Shards: []ShardState{{Shard: 4}, {Shard: 7}}}
		for i, missing := range c.missing {
			s.Lose(missing, first.Add(time.Duration(i)*time.Hour))
		}
		if want := (&Lost{c.records, first.UnixMilli(), c.shards}); !reflect.DeepEqual(s.Lost, want) {
			t.Errorf("%v: %+v; want %+v", c.missing, s.Lost, want)
		}
	}
}

// A loss is in the state until it is accepted. It does not hold up a set that has all again; what recovers does.
func TestLossIsAccepted(t *testing.T) {
	m, ns := newAlone()
	if ns.Lost() != nil || ns.Sets()[0].Recovers() {
		t.Fatalf("before a loss: %+v", ns.Lost())
	}
	succeeds(t, ns.update(func(s *State) error { s.Lose([]int64{1, 0}, m.Now()); return nil }))
	if ns = m.reopen(ns, false); ns.Lost() == nil || ns.Lost().Records != 1 || ns.Sets()[0].Recovers() {
		t.Fatalf("after it: %+v", ns.Lost())
	}
	for range 2 {
		if err := ns.AcceptLoss(); err != nil || ns.Lost() != nil || ns.Sets()[0].Recovers() {
			t.Errorf("accepted: %v, %+v", err, ns.Lost())
		}
	}
}
