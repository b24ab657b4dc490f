package node

import (
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
)

// newTimedMovers are movers that have settled, and whose clocks both go as the test says. Shard
// is one that the first two of the three hold.
func newTimedMovers(t *testing.T) (w *movers, shard placement.Shard) {
	t.Helper()
	w = newMovers(t, 1, 3)
	for _, m := range w.all {
		m.Elapsed = func() time.Duration { return m.clock.Sub(noon) }
	}
	w.settle()
	for s := range placement.Shard(w.rule.Shards) {
		if w.all[0].held(s) != nil && w.all[1].held(s) != nil {
			return w, s
		}
	}
	t.Fatal("no shard is held by the first two")
	return nil, 0
}

// syncShard is a sync of one shard that the first machine begins.
func (w *movers) syncShard(i, j int, shard placement.Shard) {
	w.t.Helper()
	if _, _, err := w.all[i].syncSet(w.all[i].held(shard), w.all[j].machine, Ask{}); err != nil {
		w.t.Fatal(err)
	}
}

// A host that was down while another one took a write is not sure, and gives no page, until it
// was found equal with the other one. What was found before it was started does not count.
func TestHostThatWasDownIsNotSure(t *testing.T) {
	w, shard := newTimedMovers(t)
	x, y, asker := w.all[0], w.all[1], w.all[2]
	key := w.keyIn(shard, 0)
	w.put(1, key)
	w.syncShard(0, 1, shard)
	w.put(1, key) // while x is down
	x.restart(t)
	read := func() (current, page bool) {
		t.Helper()
		got, err := asker.read(t, asker.ns, x.machine, key)
		if err != nil || got.Record == nil || !got.Settled {
			t.Fatalf("%+v, %v", got, err)
		}
		r := asker.ns.Shard(shard)
		ask := must(r.AskScan(x.ID, nil, nil, 1<<10))
		scanned, err := r.Page(x.ID, ask, asker.routed(t, x.machine, ask))
		if err != nil {
			t.Fatal(err)
		}
		return got.Current, len(scanned.Records) > 0
	}
	if current, page := read(); current || page {
		t.Errorf("while it lacks a write: current %t, a page %t", current, page)
	}
	w.syncShard(1, 0, shard) // y begins it: x does not know when its snapshot was taken
	if current, page := read(); current || !page {
		t.Errorf("after a sync that the other one began: current %t, a page %t", current, page)
	}
	w.syncShard(0, 1, shard)
	if current, page := read(); !current || !page {
		t.Errorf("after a sync that it began: current %t, a page %t", current, page)
	}
	if r, err := y.held(shard).get([]byte(key)); err != nil || r.Version != w.acked[key] {
		t.Errorf("%+v, %v", r, err)
	}
}

// A host that was started syncs a shard with the first of those that may hold it to which there is a link, or once it is asked for
// a page; with another member, which would deny it, it does not.
func TestHostThatWasStartedSyncsItsShards(t *testing.T) {
	next := func(w *movers, set *Set) ID {
		w.pass(10 * time.Second)
		with, _, _ := set.NextSync()
		if with != "" {
			set.HastenedDone(with, with, nil)
		}
		return with
	}
	w, shard := newTimedMovers(t)
	x, y, other := w.all[0], w.all[1], w.all[2]
	x.restart(t)
	x.Push.On = true
	set := x.held(shard)
	set.Linked(other.ID)
	if with := next(w, set); with != "" {
		t.Errorf("it syncs with %q, which does not hold the shard", with)
	}
	set.Linked(y.ID)
	if with := next(w, set); with != y.ID {
		t.Errorf("by a link it syncs with %q", with)
	}
	w, shard = newTimedMovers(t)
	x, y, other = w.all[0], w.all[1], w.all[2]
	x.restart(t)
	x.Push.On = true
	if with := next(w, x.held(shard)); with != "" {
		t.Errorf("it syncs with %q of itself", with)
	}
	ask := must(other.ns.Shard(shard).AskScan(x.ID, nil, nil, 1<<10))
	other.routed(t, x.machine, ask)
	if with := next(w, x.held(shard)); with != y.ID {
		t.Errorf("asked for a page it syncs with %q", with)
	}
}

// A host is sure for a while after it began to be found equal with the other one, by either
// clock; what it has been asked then makes it sync again before that. One that has a shard
// alone is always sure.
func TestSureLapsesAndIsRenewed(t *testing.T) {
	w, shard := newTimedMovers(t)
	x, y := w.all[0], w.all[1]
	x.Push.On = true
	set := x.held(shard)
	w.syncShard(0, 1, shard)
	next := func() ID {
		with, _, _ := set.NextSync()
		if with != "" {
			set.HastenedDone(with, with, nil)
		}
		return with
	}
	for next() != "" { // what the beginning has brought about
		w.pass(time.Second)
	}
	w.syncShard(0, 1, shard)
	if !set.Current() || next() != "" {
		t.Error("after a sync it is not sure, or syncs again at once")
	}
	w.pass(renewAfter + 1)
	if !set.Current() {
		t.Error("it is not sure a moment later")
	}
	w.pass(time.Second)
	if got := next(); got != y.ID {
		t.Errorf("it syncs with %q", got)
	}
	w.pass(CurrentFor)
	if set.Current() || !set.Proved() {
		t.Errorf("after %s: current %t, proved %t", CurrentFor, set.Current(), set.Proved())
	}
	w.syncShard(0, 1, shard)
	still := x.clock.Sub(noon)
	x.Elapsed = func() time.Duration { return still } // the machine sleeps
	w.pass(CurrentFor + time.Second)
	if set.Current() {
		t.Error("it is sure after a sleep")
	}
	alone := newMovers(t, 1, 1)
	alone.settle()
	for range 2 {
		for _, set := range alone.all[0].ns.Sets() {
			if !set.Current() || !set.Proved() {
				t.Errorf("the one that holds shard %d is not sure", set.shard)
			}
		}
		alone.all[0].restart(t)
	}
}

// state has a machine state a layout with these hosts.
func (w *movers) state(x *mover, hosts ...ID) {
	w.t.Helper()
	var all []placement.Host
	for _, id := range hosts {
		all = append(all, placement.Host{ID: id, Weight: 1})
	}
	x.ns.updating.Lock()
	defer x.ns.updating.Unlock()
	if err := x.ns.stateLocked(w.t.Context(), must(placement.Plan(w.rule, all))); err != nil {
		w.t.Fatal(err)
	}
}

// A member that was a host by an earlier layout may have acknowledged a write before the others
// heard that it holds the shard. Until it says that it holds nothing, no host is sure, and an asker
// to which all others have answered is not sure either. A change of the list that gives no member a
// shard keeps what was said before.
func TestMemberThatHasNotSaidWhatItHoldsKeepsHostsUnsure(t *testing.T) {
	w, shard := newTimedMovers(t)
	x, third := w.all[0], w.all[2]
	sure := func(what string, want bool) {
		t.Helper()
		w.syncShard(0, 1, shard)
		unheard := x.ns.Shard(shard).Unheard()
		if got := x.held(shard).Current(); got != want || unheard == want {
			t.Errorf("%s: current %t, a member is unheard %t", what, got, unheard)
		}
	}
	sure("all have said what they hold", true)
	w.apart[[2]int{0, 2}], w.apart[[2]int{1, 2}] = true, true
	both := func() {
		for range 2 {
			w.pass(CurrentFor)
			w.tend(0)
			w.sync(0, 1)
			w.tend(1)
			w.sync(1, 0)
		}
	}
	for _, id := range []ID{third.ID, idOf(50)} {
		if err := x.ns.SetRole(t.Context(), id, RoleRead, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	both()
	sure("members have other roles", true)

	// A layout by which the third is a host of all, and the next one, of the two, which it has not
	// heard of yet when it takes a write.
	if err := x.ns.SetRole(t.Context(), third.ID, RoleWrite, time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.state(x, x.ID, third.ID)
	both()
	if !slices.Contains(x.ns.Holders(shard), third.ID) {
		t.Fatal("the third is no host")
	}
	w.state(x, x.ID, w.all[1].ID)
	both()
	sure("the third was a host, and has said nothing since", false)
	clear(w.apart)
	for range 3 {
		w.sync(2, 0)
		w.tend(2)
		w.sync(2, 1)
	}
	sure("the third has said that it holds nothing", true)
}

// A member that is no host and does not say that it holds the shard proves nothing.
func TestProvedByHoldersAlone(t *testing.T) {
	w, shard := newTimedMovers(t)
	x := w.all[0]
	x.restart(t)
	set := x.held(shard)
	set.current.equal(set, w.all[2].ID, nil)
	if set.Proved() {
		t.Error("proved by a member that holds nothing")
	}
	set.current.equal(set, w.all[1].ID, nil)
	if !set.Proved() {
		t.Error("not proved by a host")
	}
}

// newHastened are machines of which the first one's set was found equal with the second one's, and awaits no sync.
func newHastened(t *testing.T) (w *movers, set *Set) {
	w, shard := newTimedMovers(t)
	x := w.all[0]
	x.Push.On = true
	set = x.held(shard)
	w.syncShard(0, 1, shard)
	w.pass(time.Minute)
	for with, _, _ := set.NextSync(); with != ""; with, _, _ = set.NextSync() { // what the beginning has brought about
		set.HastenedDone(with, with, nil)
		w.pass(time.Minute)
	}
	return w, set
}

// A node begins so many renewals a second; a set that gets none is not current, and gets one later.
func TestRenewalsAreBounded(t *testing.T) {
	w, set := newHastened(t)
	x := w.all[0]
	wanted := func() bool {
		set.hastening.mu.Lock()
		defer set.hastening.mu.Unlock()
		of := set.hastening.wants[w.all[1].ID]
		return of != nil && of.renew
	}
	begun := 0
	for at := x.elapsed(); x.elapsed() < at+10*time.Second; w.pass(time.Millisecond) {
		for range 3 { // other sets
			if x.renewals.take(x.elapsed()) {
				begun++
			}
		}
	}
	if begun > 10*maxRenewals+renewalsAtOnce || begun < 10*maxRenewals {
		t.Errorf("%d renewals in ten seconds", begun)
	}
	for x.renewals.take(x.elapsed()) { // others take what is left
	}
	if set.Current() || wanted() {
		t.Errorf("over the bound: current %t, a sync is wanted %t", set.Current(), wanted())
	}
	w.pass(time.Second)
	if set.Current() || !wanted() {
		t.Error("later it asks for no sync")
	}
	before := x.renewals.next
	if set.Current(); x.renewals.next != before {
		t.Error("one that is wanted already counts twice")
	}
}

// A sync in which records are declined, for a floor that is not proven yet, does not find the two
// equal: a set that is asked again and again has the next one made ever later.
func TestRenewalsThatAreDeclinedRest(t *testing.T) {
	w, set := newHastened(t)
	x, y := w.all[0], w.all[1]
	syncs := func(d time.Duration, err error) (n int) {
		for end := x.elapsed() + d; x.elapsed() < end; w.pass(100 * time.Millisecond) {
			set.Current()
			if with, _, _ := set.NextSync(); with == y.ID {
				set.HastenedDone(with, with, err)
				n++
			}
		}
		return n
	}
	if n := syncs(time.Minute, ErrRejected); n < 10 || n > 18 {
		t.Errorf("%d syncs in a minute that decline records", n)
	}
	w.syncShard(0, 1, set.shard) // finds them equal, whatever led to it
	if n := syncs(renewAfter+time.Second, nil); n == 0 || !set.Current() {
		t.Errorf("once they are equal: %d syncs, current %t", n, set.Current())
	}
}
