package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/syncing"
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
		if err := ns.Rest(context.Background()); err != nil {
			panic(err)
		}
	}
	state := ns.state.Load()
	m.Forget(ns)
	if err := ns.Sets()[0].Store.Close(); err != nil {
		panic(err)
	}
	if err := ns.Control.Store.Close(); err != nil {
		panic(err)
	}
	return must(m.open(ns.Sets()[0].Keys.Secret, state))
}

// Three nodes hold the same, and a fault in the memory of one is in its summary, too, so
// that a restart brings it back. A sync with another works round it and gives rise to an
// audit; then no sync finds it any more, with the third either, after kill -9 neither.
func TestDamageOfOneOfThreeIsMended(t *testing.T) {
	for _, sketch := range []bool{true, false} {
		t.Run(fmt.Sprintf("in the sketch: %t", sketch), func(t *testing.T) {
			ms, sets := newCrowded(3)
			for _, m := range ms {
				m.Summaries.Least = -1
			}
			for i := range 300 {
				must(put(sets[i%3], fmt.Sprint("k", i), "v"))
			}
			for range 2 {
				for i, ns := range sets {
					if _, _, err := ms[i].sync(ns, ms[(i+1)%3], syncing.Ask{}); err != nil {
						t.Fatal(err)
					}
				}
			}
			for i := range sets {
				must(put(sets[0], "last", fmt.Sprint(i)))
			}
			spoil(sets[0], sketch)
			for _, inOrder := range []bool{true, false} {
				sets[0] = ms[0].reopen(sets[0], inOrder)
			}
			r, there, err := ms[1].sync(sets[1], ms[0], syncing.Ask{})
			if err != nil || !r.Verified || !there.Verified {
				t.Fatalf("a sync with the damage: %v", err)
			}
			if r.Repair.Sketch != sketch || there.Repair.Sketch != sketch || (there.Repair.Digests > 0) == sketch || r.Repair.Digests > 0 {
				t.Fatalf("it found %+v, and the node with the damage %+v", r.Repair, there.Repair)
			}
			if due := []bool{sets[0].AuditDue(), sets[1].AuditDue(), sets[2].AuditDue()}; !due[0] || due[1] != sketch || due[2] {
				t.Errorf("audits are due: %v", due)
			}
			must(put(sets[1], "last", "of all")) // where nothing differs, no cells are looked at
			if again, _, err := ms[1].sync(sets[1], ms[0], syncing.Ask{}); err != nil || again.Repair.Sketch != sketch {
				t.Errorf("before an audit: %v, %+v", err, again.Repair)
			}
			for i, ns := range sets {
				if !ns.AuditDue() {
					continue
				}
				if d, _, err := ns.Audit(t.Context(), nil); err != nil || d.Any() != (sketch && i == 0) || ns.AuditDue() {
					t.Errorf("an audit of node %d: %v, %v; it is due still: %t", i, d, err, ns.AuditDue())
				}
			}
			if err := ms[0].KeepSummaries(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			sets[0] = ms[0].reopen(sets[0], false)
			for _, i := range []int{2, 1} {
				r, there, err := ms[i].sync(sets[i], ms[0], syncing.Ask{})
				if err != nil || r.Repair.Needed() || there.Repair.Needed() {
					t.Errorf("node %d, after a restart: %v, %+v, %+v", i, err, r.Repair, there.Repair)
				}
			}
			for i, ns := range sets {
				if fmt.Sprint(records(ns)) != fmt.Sprint(records(sets[0])) {
					t.Errorf("node %d holds others than node 0", i)
				}
				if d, _, err := ns.Audit(t.Context(), nil); err != nil || d.Any() {
					t.Errorf("node %d has drifted: %v, %v", i, d, err)
				}
			}
		})
	}
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
	if _, _, err := ms[1].sync(sets[1], ms[0], syncing.Ask{}); err != nil {
		t.Fatal(err)
	}
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
			if err := m.KeepSummaries(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			c.ns[i] = m.reopen(c.ns[i], false)
		}
		c.put(0, "after", "1")
		if mine, theirs, err := c.sync(syncing.Ask{}); err != nil || !mine.Verified || mine.Repair.Needed() || theirs.Repair.Needed() {
			t.Errorf("after a restart: %v, %+v", err, mine)
		}
	}
}
