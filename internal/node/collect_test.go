package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// crew are nodes that share a namespace: the first has created it and invited the
// others.
type crew struct {
	t        *testing.T
	machines []*machine
	ns       []*Namespace
	ticket   string // of the first
}

func newCrew(t *testing.T, n int) *crew {
	c := &crew{t: t}
	for i := range n {
		c.join(i, RoleWrite)
	}
	c.round()
	c.round()
	return c
}

// join adds a machine.
func (c *crew) join(i int, role Role) {
	m := newMachine(i + 1)
	c.machines = append(c.machines, m)
	if i == 0 {
		c.ns = append(c.ns, m.create("notes", Policy{}))
		return
	}
	m.clock = c.machines[0].clock
	c.ns = append(c.ns, must(m.join(c.machines[0], invite(c.ns[0], role))))
}

// pass lets time pass on all machines.
func (c *crew) pass(d time.Duration) {
	for _, m := range c.machines {
		m.clock = m.clock.Add(d)
	}
}

// turn is one of the schedule's: the control namespace first, then the data.
func (c *crew) turn(i, j int) error {
	if _, _, err := c.machines[i].converse(c.ns[i], c.machines[j], syncing.Ask{Control: true}); err != nil {
		return err
	}
	_, _, err := c.machines[i].sync(c.ns[i], c.machines[j], syncing.Ask{})
	for range 2 {
		if !errors.Is(err, reconcile.ErrBusy) {
			break
		}
		// One of the two has collected first.
		_, _, err = c.machines[i].sync(c.ns[i], c.machines[j], syncing.Ask{})
	}
	return err
}

// round lets each of the nodes tend and sync with each other one of them; without
// which, all do.
func (c *crew) round(only ...int) {
	c.t.Helper()
	for i := range c.machines {
		if len(only) > 0 && !slices.Contains(only, i) {
			continue
		}
		for j := range c.machines {
			if i == j || len(only) > 0 && !slices.Contains(only, j) {
				continue
			}
			c.pass(time.Second)
			if err := c.turn(i, j); err != nil && !errors.Is(err, syncing.ErrRejected) {
				c.t.Fatalf("%d syncs with %d: %v", i, j, err)
			}
		}
		if err := c.machines[i].Tend(context.Background()); err != nil {
			c.t.Fatalf("%d tends: %v", i, err)
		}
	}
}

// quiet lets rounds pass until no node holds anything that waits to be collected.
func (c *crew) quiet() {
	c.t.Helper()
	for range 12 {
		c.round()
		if !slices.ContainsFunc(c.ns, func(ns *Namespace) bool {
			return slices.ContainsFunc(records(ns), func(r dbadapter.Record) bool { return r.Deleted || r.Expires != 0 })
		}) {
			return
		}
	}
	for i, ns := range c.ns {
		c.t.Errorf("%d holds %v; %+v", i, records(ns), ns.Sets()[0].Collection())
	}
	c.t.FailNow()
}

func (c *crew) put(i int, key, value string) {
	must(put(c.ns[i], key, value))
}

func (c *crew) del(i int, key string) {
	must(commit(c.ns[i].Sets()[0].Delete([]byte(key))))
}

// keys are those that a node holds, tombstones with a minus.
func (c *crew) keys(i int) (keys []string) {
	for _, r := range records(c.ns[i]) {
		key := string(r.Key)
		if r.Deleted {
			key = "-" + key
		}
		keys = append(keys, key)
	}
	return keys
}

func (c *crew) want(i int, keys ...string) {
	c.t.Helper()
	if got := c.keys(i); !slices.Equal(got, keys) {
		c.t.Errorf("%d holds %q, want %q", i, got, keys)
	}
}

// What is deleted on one node, and what expires, goes from all, and nothing that
// was not.
func TestCollected(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "stays", "1")
	c.put(1, "goes", "1")
	must(commit(c.ns[2].Sets()[0].Write(Draft{Record: dbadapter.Record{Key: []byte("expires")}, TTL: 5 * time.Second})))
	c.round()
	c.want(0, "expires", "goes", "stays")
	c.del(2, "goes")
	c.quiet()
	for i := range c.ns {
		c.want(i, "stays")
		if floor := c.ns[i].Sets()[0].Collection().Floor; floor.IsZero() {
			t.Errorf("%d has no floor", i)
		}
	}
	// The state that is durable has the floor: it is the one that a restart finds.
	if s := c.ns[0].state.Load(); s.Watermark.Floor == 0 || s.Watermark.Pledged < s.Watermark.Floor {
		t.Errorf("durable: %+v", s.Watermark)
	}
	pledges := func() (n uint64) {
		for _, ns := range c.ns {
			n += ns.state.Load().Watermark.Serial
		}
		return n
	}
	before := pledges()
	for range 5 {
		c.round()
	}
	if pledges() != before {
		t.Errorf("%d pledges in quiet times", pledges()-before)
	}
}

// A silent member holds the collection back, and is named; once it has lapsed, the
// others collect. When it comes back with a record that they have deleted, with one
// that it deleted and with one of its own, nothing comes back by itself, and what is
// alive is kept for a person.
func TestLapsedMemberReturns(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "deleted", "1")
	c.put(0, "stays", "1")
	c.round()
	c.put(2, "unheard", "of")
	c.pass(time.Minute)
	c.del(1, "deleted")
	for range 6 {
		c.round(0, 1)
	}
	held := c.ns[0].Sets()[0].Collection()
	if len(held.Holding) != 1 || held.Holding[0].Member != status.ID(c.machines[2].ID) || held.Waiting == 0 || held.Holding[0].Synced.IsZero() {
		t.Fatalf("holding it back: %+v", held)
	}
	c.want(0, "-deleted", "stays")
	succeeds(t, c.ns[0].Lapse(context.Background(), c.machines[2].ID))
	for range 6 {
		c.round(0, 1)
	}
	c.want(0, "stays")
	c.want(1, "stays")

	c.quiet()
	c.round()
	for i := range c.ns {
		c.want(i, "stays")
		if m, _ := c.ns[i].Members().Member(c.machines[2].ID); m.Lapsed {
			t.Errorf("%d has not heard that the member is back", i)
		}
	}
	if n := c.ns[2].Sets()[0].Store.KeptCount(dbadapter.KeptSetAside); n == 0 {
		t.Error("the member's own record is not kept for a person")
	}
	c.put(2, "new", "1")
	c.round()
	c.want(0, "new", "stays")
}

// The statement of a liar, a reading or a floor of the year 2099, makes no node
// collect nor set anything aside.
func TestLiarOf2099(t *testing.T) {
	c := newCrew(t, 2)
	c.put(0, "a", "1")
	c.round()
	c.del(0, "a")
	future := dbadapter.TimestampAt(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
	ns := c.ns[1]
	value := must((&watermark.Pledge{List: ns.Members().Digest(), Vector: []dbadapter.Timestamp{future, future}, Promised: future, Wanted: future, Serial: 99}).Encode())
	succeeds(t, say(ns, ns.Sets()[0].pledgeKey(), value))
	greeting := c.ns[0].believe(wire.Greeting{Tau: future, Floor: future})
	if greeting.Tau != 0 {
		t.Errorf("a reading of 2099 is believed: %+v", greeting)
	}
	for range 4 {
		c.pass(3 * time.Second)
		succeeds(t, c.turn(0, 1))
		succeeds(t, c.machines[0].Tend(context.Background()))
	}
	c.want(0, "-a")
	c.ns[0].Sets()[0].gc.View(func(w *watermark.Watermark) {
		if w.Proven(future, future) {
			t.Error("a floor of 2099 is proven")
		}
	})
}

// A reading of the clock is durable before it is said: after a restart the node
// makes no version up to it, though its clock stepped back.
func TestTauIsDurable(t *testing.T) {
	m, ns := newAlone()
	var last dbadapter.Timestamp
	for range 5 {
		m.clock = m.clock.Add(time.Second)
		tau := must(ns.Sets()[0].gc.Tau(context.Background()))
		if tau <= last {
			t.Fatalf("%d after %d", tau, last)
		}
		last = tau
	}
	m.clock = m.clock.Add(-time.Minute)
	again := m.reopen(ns, false)
	if v := must(put(again, "a", "1")); v.Clock <= last {
		t.Errorf("version %s after the reading %x", v, uint64(last))
	}
}

// A sweep that runs while a member is being admitted collects up to nothing that the new member may
// still write: its first version follows that of its grant.
func TestSweepWhileAMemberIsAdmitted(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("things", Policy{})
	must(put(sa, "gone", "x"))
	ticket := invite(sa, RoleWrite)
	swept := make(chan error, 1)
	a.applyControl = func(ns dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		a.applyControl = nil
		a.clock = a.clock.Add(2 * time.Second)
		must(commit(sa.Sets()[0].Delete([]byte("gone"))))
		go func() {
			_, err := sa.Sets()[0].gc.Sweep(context.Background())
			swept <- err
		}()
		select { // the sweep waits for the grant; one that does not has time to end
		case err := <-swept:
			swept <- err
		case <-time.After(100 * time.Millisecond):
		}
		return ns.Apply(context.Background(), writes)
	}
	sb := must(b.join(a, ticket))
	succeeds(t, <-swept)
	must(put(sb, "new", "y"))
	if mine, _, err := b.sync(sb, a, syncing.Ask{}); err != nil || mine.Rejected > 0 {
		t.Errorf("what the new member has written first: %d records were declined, %v", mine.Rejected, err)
	}
}

// A sync of all that found its differences by cells is what the next one opens
// by; a sync that failed, of a prefix, or that sent everything says nothing.
func TestOpeningsAreNoted(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	for what, ask := range map[string]syncing.Ask{"of a prefix": {Prefix: []byte("l")}, "of everything": {Method: wire.MethodAll}} {
		for i := range syncing.Remembered { // so often that the next one would open with other cells
			must(put(sa, fmt.Sprint(what, i), "v"))
			if _, _, err := b.sync(sb, a, ask); err != nil {
				t.Errorf("a sync %s: %v", what, err)
			}
		}
	}
	for range syncing.Remembered {
		c := must(sb.Sets()[0].Initiate(t.Context(), a.ID, syncing.Ask{}, nil))
		c.Session.Next()
		_, _ = c.End(reconcile.ErrUnreachable)
	}
	for i := range syncing.Remembered {
		must(put(sa, fmt.Sprint(i), "v"))
		if r, _, err := b.sync(sb, a, syncing.Ask{Method: wire.MethodSketch}); err != nil || r.Cells != reconcile.FirstCells {
			t.Errorf("sync %d opened with %d cells; %v", i, r.Cells, err)
		}
	}
	must(put(sa, "one more", "v"))
	if r, _, err := b.sync(sb, a, syncing.Ask{Method: wire.MethodSketch}); err != nil || r.Cells != reconcile.CellsToOpen(1) {
		t.Errorf("after syncs of one difference it opened with %d cells; %v", r.Cells, err)
	}
	if n := sa.Sets()[0].openings.Cells(b.ID); n != reconcile.CellsToOpen(1) {
		t.Errorf("the other side would open with %d cells", n)
	}
}

// After four syncs of next to nothing a sync of equal sets costs 600 bytes at the
// most; what is written then comes over and is proved, whichever side began. The first sync
// of more ends the quiet.
func TestQuietTime(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	for i := range 100 {
		must(put(sa, fmt.Sprint("k", i), "v"))
	}
	sync := func() reconcile.Report {
		r, _, err := b.sync(sb, a, syncing.Ask{})
		if err != nil || !r.Verified {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	sync()
	for n := range syncing.Remembered {
		if r := sync(); n > 0 && r.Cells != reconcile.FirstCells {
			t.Errorf("sync %d opens with %d cells", n, r.Cells)
		}
	}
	for n := range 4 {
		for i := range n {
			must(put([]*Namespace{sa, sb}[i%2], fmt.Sprint("k", 10*n+i), "changed"))
		}
		r := sync()
		if r.Differences() != n {
			t.Errorf("%d differences of %d", r.Differences(), n)
		}
		if size := r.WireBytesSent + r.WireBytesReceived; n == 0 && (size > 600 || r.Cells != reconcile.QuietCells) {
			t.Errorf("a sync of equal sets takes %d bytes and %d cells", size, r.Cells)
		}
	}
	if r := sync(); r.Cells != reconcile.CellsToOpen(3) {
		t.Errorf("after three differences a sync opens with %d cells", r.Cells)
	}
}
