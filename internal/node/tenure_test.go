package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A shard that was left is not held, also after a crash in the midst of it; held again, it is
// empty. What an old host may have alone keeps it.
func TestLeaveNeedsAllHosts(t *testing.T) {
	w := newMovers(t, 1, 3)
	w.settle()
	for n := range 40 {
		for i := range w.all {
			w.put(i, fmt.Sprint("k", n))
		}
	}
	layout := must(first(w.all[0].ns.Layout()))
	old, shard := -1, placement.Shard(0)
	for i, m := range w.all { // one that is no host of a shard
		for s := range placement.Shard(w.rule.Shards) {
			if !layout.Has(s, m.ID) {
				old, shard = i, s
			}
		}
	}
	m := w.all[old]
	set := m.lateHost(t, shard)
	if hold, leave := m.ns.Moves(); len(hold)+len(leave) != 0 {
		t.Fatalf("%v, %v", hold, leave)
	}
	wantErr(t, m.ns.Leave(set), reconcile.ErrBusy, "it left")
	wantErr(t, second(commit(set.Write(draft("k", "value")))), ErrNotHost, "a write to an old host")
	wantErr(t, second(m.ns.TakeShard(t.Context(), shard)), ErrInvalid, "held twice")
	for j := range w.all {
		w.sync(old, j)
	}
	if _, records, _ := set.Live.State(); records == 0 {
		t.Error("the shard is empty")
	}
	update := func(set *Set, fn func(w *watermark.Watermark) bool) {
		succeeds(t, set.gc.Update(fn))
	}
	update(set, func(w *watermark.Watermark) bool { w.Pledge(1, 0); return true }) // it pledges
	pledge := watermark.Pledge{Serial: set.gc.State().Serial}
	_, leave := m.ns.Moves()
	if !slices.Equal(leave, []*Set{set}) {
		t.Fatalf("after it was found equal with both hosts: %v; missing %v", leave, set.tenure.missing())
	}
	succeeds(t, m.ns.Leave(set))
	if len(m.ns.state.Load().Shards) == 0 || m.held(shard) != nil || m.part(set.Keys.ID) != nil {
		t.Error("it is there still")
	}
	wantErr(t, second(m.ns.TakeShard(t.Context(), shard)), reconcile.ErrBusy, "held while it is being dropped")
	verdicts, err := set.Admit(t.Context(), w.all[0].ID, 0, noTerm, nil)()
	if len(verdicts) != 0 || err != nil {
		t.Errorf("%v, %v", verdicts, err)
	}
	m.restart(t)
	if _, kept := m.state.find(shard); kept || m.held(shard) != nil {
		t.Error("after a crash it is there still")
	}
	again := m.lateHost(t, shard)
	if _, records, _ := again.Live.State(); records != 0 || !again.Recovers() {
		t.Errorf("%d records, settled: %v", records, !again.Recovers())
	}
	update(again, func(w *watermark.Watermark) bool { return w.Receive(m.ID, &pledge, dbadapter.Version{}) })
	if again.tenure.begun(m.elapsed()) == noTerm {
		t.Error("a node that has handed a shard over, and takes it again, counts as one that lost records")
	}
}

// What is found equal counts only while the list of members and the layout are as they were
// when the sync began, and while no record enters that came otherwise.
func TestHandoverCountsInItsTerm(t *testing.T) {
	w := newMovers(t, 1, 3)
	w.settle()
	layout := must(first(w.all[0].ns.Layout()))
	shard := placement.Shard(0)
	hosts, old := []int{}, -1
	for i, m := range w.all {
		if layout.Has(shard, m.ID) {
			hosts = append(hosts, i)
		} else {
			old = i
		}
	}
	m := w.all[old]
	set := m.lateHost(t, shard)
	n := 0
	put := func(i int) { // a key of the shard
		for ; w.home(fmt.Sprint("k", n)) != shard; n++ {
		}
		w.put(i, fmt.Sprint("k", n))
		n++
	}
	equal := func() {
		t.Helper()
		for _, i := range append(hosts, hosts...) {
			w.sync(old, i)
		}
		if !set.tenure.mayEnd() {
			t.Fatalf("missing %v", set.tenure.missing())
		}
	}
	equal()
	// The row changes while a sync runs.
	again := func() {
		set.tenure.goes(nil)
		set.rehost()
	}
	again()
	put(hosts[0])
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		again()
		return store.Apply(t.Context(), writes)
	}
	w.sync(old, hosts[0])
	m.apply = nil
	w.sync(old, hosts[1])
	if missing := set.tenure.missing(); !slices.Equal(missing, []ID{w.all[hosts[0]].ID}) {
		t.Errorf("after a sync that the layout overtook: missing %v", missing)
	}
	equal()
	// A sync that began in another term, or under another list, brings something.
	for _, term := range []quorum.Term{set.tenure.term() - 1, noTerm} {
		put(hosts[0])
		host := w.all[hosts[0]].held(shard)
		snap := must(host.Store.Snapshot())
		r := must(snap.Get(fmt.Appendf(nil, "k%d", n-1)))
		snap.Close()
		succeeds(t, second(set.Admit(t.Context(), w.all[hosts[0]].ID, 0, term, []dbadapter.Hashed{must(dbadapter.Hash(set.Keys.Hasher, r))})()))
		if set.tenure.mayEnd() {
			t.Errorf("it may leave after a sync of term %d has brought something", term)
		}
		equal()
	}
	// A write of this node's that began when it was a host.
	a := must(set.Write(draft("k", "value")))
	release := a.Hold()
	again()
	set.tenure.equal(w.all[hosts[0]].ID, 0, set.tenure.term())
	set.tenure.equal(w.all[hosts[1]].ID, 0, set.tenure.term())
	release()
	if set.tenure.mayEnd() {
		t.Error("it may leave after a write")
	}
	// A push, which is passed on to hosts.
	if _, verdict, err := set.Arrived(w.all[hosts[0]].ID, nil, false); verdict != push.Ignored || !errors.Is(err, ErrNotHost) {
		t.Errorf("a push: %v, %v", verdict, err)
	}
	equal()
	succeeds(t, m.ns.Leave(set))
	succeeds(t, second(set.Admit(t.Context(), w.all[hosts[0]].ID, 0, noTerm, nil)()))
	snap := must(w.all[hosts[0]].held(shard).Store.Snapshot())
	defer snap.Close()
	r := must(dbadapter.Hash(set.Keys.Hasher, must(snap.Get(fmt.Appendf(nil, "k%d", n-1)))))
	wantErr(t, second(set.Admit(t.Context(), w.all[hosts[0]].ID, 0, noTerm, []dbadapter.Hashed{r})()), dbadapter.ErrClosed, "a record for a shard that was left")
}

// What a writer routes to a host that has promised to hold all up to a later time comes too
// late; the promise stays below what does not.
func TestRoutedWriteKeepsPromise(t *testing.T) {
	c := newShardCrew(t, []placement.Shard{0}, []placement.Shard{0})
	c.rounds(1)
	set := c.set(0, 0)
	promised := dbadapter.TimestampAt(c.machines[0].clock)
	editMark(set, func(s *watermark.State) { s.Pledged = promised })
	route := func(clock dbadapter.Timestamp) (wire.Reason, int) {
		t.Helper()
		r := dbadapter.Record{Key: []byte(c.keyIn(0, fmt.Sprint(clock))), Version: dbadapter.Version{Clock: clock, Writer: writerOf(2)}}
		r.Signature = ed25519.Sign(keyOf(2), SignedBytes(set.Keys.ID, &r))
		a := set.arrived(c.ns[0].Members(), idOf(2), 0, c.machines[0].clock, []dbadapter.Hashed{must(dbadapter.Hash(set.Keys.Hasher, r))})
		a.way = byRoute
		succeeds(t, set.let(t.Context(), 0, a))
		return a.verdicts[0].Reason, len(c.ns[0].state.Load().Shards[0].Watermark.Holds)
	}
	if why, holds := route(promised); why != wire.ReasonFloor || holds != 0 {
		t.Errorf("as late as the promise: declined for %v, %d holds", why, holds)
	}
	if why, holds := route(promised + 1); why != 0 || holds != 1 {
		t.Errorf("later than the promise: declined for %v, %d holds", why, holds)
	}
	if why, holds := route(promised + 2); why != 0 || holds != 1 {
		t.Errorf("behind another one: declined for %v, %d holds", why, holds)
	}
	if promise(set, promised+100) > promised {
		t.Error("it promises to hold what the other host may lack")
	}
}

// A shard waits for each member that may hold it: one that has not said under the list as it
// is now that it does not.
func TestShardWaitsForHolders(t *testing.T) {
	w := newMovers(t, 1, 4)
	w.settle()
	set := w.all[0].ns.Sets()[0]
	waits := func() (others []int) {
		_, active := set.waitedFor(w.all[0].ns.Members())
		for i, m := range w.all[1:] {
			if host, _ := set.isHost(m.ID); !host && slices.Contains(active, m.ID) {
				others = append(others, i+1)
			}
		}
		return others
	}
	if got := waits(); got != nil {
		t.Errorf("all have said what they hold, and it waits for %v, which are no hosts", got)
	}
	before, _ := set.waitedFor(w.all[0].ns.Members())
	succeeds(t, setRole(w.all[0].ns, idOf(50), RoleRead))
	if got := waits(); len(got) != 2 {
		t.Errorf("under a list by which no member has said anything it waits for %v beside the hosts", got)
	}
	if after, _ := set.waitedFor(w.all[0].ns.Members()); after == before {
		t.Error("pledges count under another list, too")
	}
}

// missing are the hosts with which this node was not found equal yet.
func (t *tenure) missing() []ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.host.Missing()
}

// Two nodes with one list hold different void statements, together more than a set
// keeps. They tell one another once; then they hold the same, and a turn does without
// the control namespace.
func TestVoidStatementsAreToldOnce(t *testing.T) {
	a, b, removed := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	succeeds(t, setRole(sa, removed.ID, RoleAdmin))
	made := 0
	flood := func() (values [][]byte) {
		for range roster.MaxVoid - 100 {
			made++
			d := roster.Statement{Kind: roster.Grant, Subject: idOf(4), Role: RoleRead}
			values = append(values, must(roster.Make(rosterOf(sa), d, removed.ID, dbadapter.TimestampAt(a.clock)+dbadapter.Timestamp(made), removed.Sign)))
		}
		return values
	}
	one, other := flood(), flood()
	sb := must(b.join(a, invite(sa, RoleWrite)))
	succeeds(t, sa.Remove(context.Background(), removed.ID, false))
	succeeds(t, b.turn(sb, a))
	for ns, values := range map[*Namespace][][]byte{sa: one, sb: other} {
		if err := take(ns, values...); err != nil || len(ns.Members().Voided()) != len(values) {
			t.Fatal(len(ns.Members().Voided()), err)
		}
	}
	for range 2 {
		_ = b.turn(sb, a) // the first may end before the two are equal
	}
	if sb.unlike(a.ID) {
		t.Error("the next turn begins with the control namespace again")
	}
	if n := len(sa.Members().Voided()); n != roster.MaxVoid || rosterOf(sa).Len() != rosterOf(sb).Len() || len(controlRecords(sa)) != len(controlRecords(sb)) {
		t.Errorf("%d void statements are kept; %d and %d statements, %d and %d records", n, rosterOf(sa).Len(), rosterOf(sb).Len(), len(controlRecords(sa)), len(controlRecords(sb)))
	}
}

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
		r := must(set.Get([]byte(w.keyIn(0, 0))))
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
