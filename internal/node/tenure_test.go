package node

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/quorum"
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
