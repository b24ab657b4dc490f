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
