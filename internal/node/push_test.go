package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/clocks"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// pushers are members that push, on one clock: the first is the admin, the others write.
type pushers struct {
	machines []*machine
	spaces   []*Namespace
	elapsed  time.Duration
}

func newPushers(n int, p Policy) *pushers {
	ps := &pushers{}
	for i := range n {
		m := newMachine(i + 1)
		m.Push.On, m.Elapsed = true, func() time.Duration { return ps.elapsed }
		ps.machines = append(ps.machines, m)
		if i == 0 {
			ps.spaces = append(ps.spaces, m.create("notes", p))
			continue
		}
		ps.spaces = append(ps.spaces, must(m.join(ps.machines[0], invite(ps.spaces[0], RoleWrite))))
	}
	for i := 1; i < n; i++ { // all know all
		if err := ps.machines[i].turn(ps.spaces[i], ps.machines[0]); err != nil {
			panic(err)
		}
	}
	ps.wait(time.Hour)
	for i := range n {
		ps.pushes(i)
	}
	return ps
}

func (ps *pushers) wait(d time.Duration) { ps.elapsed += d }

// pushes are what a node has to push now.
func (ps *pushers) pushes(i int) (all [][]byte) {
	for next, _ := ps.spaces[i].Sets()[0].Pushes().Next(); next != nil; next, _ = ps.spaces[i].Sets()[0].Pushes().Next() {
		all = append(all, next.Bytes())
	}
	return all
}

// kinds tells which they are.
func kinds(pushes [][]byte) (all string) {
	for _, data := range pushes {
		all += []string{"records ", "more ", "digest "}[must(wire.ParsePush(data)).Kind]
	}
	return strings.TrimSpace(all)
}

// hear gives node i a push that came from node by.
func (ps *pushers) hear(i, by int, data []byte) (push.Verdict, error) {
	a, verdict, err := ps.spaces[i].Sets()[0].Arrived(ps.machines[by].ID, data, false)
	if verdict == push.Taken {
		err = ps.spaces[i].Sets()[0].CommitArrivals(context.Background(), []*Arrival{a})
	}
	return verdict, err
}

func (ps *pushers) must(t *testing.T, i, by int, pushes ...[]byte) {
	t.Helper()
	for _, data := range pushes {
		if verdict, err := ps.hear(i, by, data); verdict != push.Taken || err != nil {
			t.Fatalf("a push is not taken: %d, %v", verdict, err)
		}
	}
}

// syncs is with which node the namespace wants to sync now, or −1.
func (ps *pushers) syncs(i int) int {
	with, _, _ := ps.spaces[i].Sets()[0].Pushes().NextSync()
	return ps.number(with)
}

// wantSync checks with which node the namespace wants to sync now; −1: with none.
func (ps *pushers) wantSync(t *testing.T, i, want int, what string) {
	t.Helper()
	if with := ps.syncs(i); with != want {
		t.Fatalf("%s: node %d wants a sync with %d, not %d", what, i, with, want)
	}
}

// number is that of a node, or −1.
func (ps *pushers) number(id ID) int {
	return slices.IndexFunc(ps.machines, func(m *machine) bool { return m.ID == id })
}

// What one node writes reaches a second one by a third, and counts there as if a sync
// had brought it.
func TestPushedRecords(t *testing.T) {
	for _, p := range []Policy{{}, {Unsigned: true}} {
		ps := newPushers(3, p)
		v := must(put(ps.spaces[1], "k", "v"))
		if got := ps.pushes(1); got != nil {
			t.Fatalf("%d pushes before others could join", len(got))
		}
		must(put(ps.spaces[1], "l", "w"))
		if _, wait := ps.spaces[1].Sets()[0].Pushes().Next(); wait != 5*time.Millisecond {
			t.Errorf("asked again in %s", wait)
		}
		ps.wait(5 * time.Millisecond)
		all := ps.pushes(1)
		if kinds(all) != "records" {
			t.Fatalf("the pushes are %s", kinds(all))
		}
		ps.must(t, 0, 1, all...)
		ps.must(t, 2, 0, all...)
		for i, ns := range ps.spaces {
			if r := must(get(ns, "k")); r.Version != v || string(r.Value) != "v" {
				t.Errorf("node %d holds %+v", i, r)
			}
			if ns.Sets()[0].digests() != ps.spaces[0].Sets()[0].digests() {
				t.Errorf("node %d holds another set", i)
			}
		}
		// A reader may not pass on what it could have changed.
		setRole(ps.spaces[0], ps.machines[2].ID, RoleRead)
		must(put(ps.spaces[1], "m", "x"))
		ps.wait(time.Second)
		want := push.Taken
		if p.Unsigned {
			want = push.Ignored
		}
		if verdict, err := ps.hear(0, 2, ps.pushes(1)[0]); verdict != want {
			t.Errorf("unsigned %v: what a reader passes on: %d, %v", p.Unsigned, verdict, err)
		}
	}
}

// What a sync would not admit, a push does not bring, and no list of rejections shows it.
func TestPushesThatAreNotTaken(t *testing.T) {
	ps := newPushers(3, Policy{MaxSkew: time.Minute})
	stranger := newMachine(99)
	pushed := func(d time.Duration, i int) []byte {
		ps.machines[i].clock = noon.Add(d)
		must(put(ps.spaces[i], fmt.Sprint("k", d), "v"))
		ps.wait(100 * time.Millisecond)
		return ps.pushes(i)[0]
	}
	check := func(what string, data []byte, from ID, want push.Verdict) {
		t.Helper()
		_, verdict, err := ps.spaces[0].Sets()[0].Arrived(from, data, false)
		if verdict != want {
			t.Errorf("%s: verdict %d, %v", what, verdict, err)
		}
	}
	good := pushed(0, 1)
	check("from a stranger", good, stranger.ID, push.Refused)
	check("malformed", good[:len(good)-1], ps.machines[1].ID, push.Refused)
	forged := bytes.Clone(good)
	forged[len(forged)-1]++ // of the value
	check("forged", forged, ps.machines[1].ID, push.Refused)
	check("from the future", pushed(2*time.Minute, 1), ps.machines[1].ID, push.Ignored)
	m := must(wire.ParsePush(good))
	m.Origin = []byte(stranger.ID)
	check("of a stranger", wire.AppendPush(nil, m, nil)[:], ps.machines[1].ID, push.Refused) // no records
	m.Kind = wire.PushMore
	check("of a stranger, without records", wire.AppendPush(nil, m, nil), ps.machines[1].ID, push.Ignored)
	for n, incarnation := range []uint64{1, 2, 1} {
		_ = ps.spaces[0].twins.Greeted(ps.machines[1].ID, &wire.Greeting{Incarnation: incarnation, Tau: dbadapter.TimestampAt(noon) + dbadapter.Timestamp(n)}, noon, time.Minute)
	}
	check("from one of two twins", good, ps.machines[1].ID, push.Ignored)
	ps.spaces[0].twins = clocks.Twins{}
	ps.machines[2].clock = noon
	succeeds(t, ps.spaces[0].Remove(context.Background(), ps.machines[2].ID, false))
	check("of a former member", pushed(time.Second, 2), ps.machines[1].ID, push.Ignored)
	check("from a former member", good, ps.machines[2].ID, push.Refused)
	if n := ps.spaces[0].Sets()[0].RejectedCount(); n != 0 {
		t.Errorf("%d rejections are listed", n)
	}
	if ps.syncs(0) >= 0 {
		t.Error("what was not taken leads to a sync")
	}
	// Behind the floor a key that is free stays free.
	a, verdict, err := ps.spaces[0].Sets()[0].Arrived(ps.machines[1].ID, good, false)
	if verdict != push.Taken {
		t.Fatal(verdict, err)
	}
	must(0, ps.spaces[0].Sets()[0].gc.Update(func(w *watermark.Watermark) bool { return w.RaiseFloor(a.Records[0].Version.Clock) }))
	succeeds(t, ps.spaces[0].Sets()[0].CommitArrivals(context.Background(), []*Arrival{a}))
	wantErr(t, second(get(ps.spaces[0], "k0s")), dbadapter.ErrNotFound, "what the floor keeps out is held")
}

// A push that was lost leads to a sync with its origin, unless it comes late.
func TestGapsLeadToSyncs(t *testing.T) {
	ps := newPushers(3, Policy{})
	next := func() []byte {
		must(put(ps.spaces[1], "k", "v"))
		ps.wait(5 * time.Millisecond)
		return ps.pushes(1)[0]
	}
	ps.must(t, 0, 1, next())
	late := next()
	ps.must(t, 0, 1, next())
	if _, _, wait := ps.spaces[0].Sets()[0].Pushes().NextSync(); wait <= 0 {
		t.Fatal("a gap leads to no sync")
	}
	ps.must(t, 0, 1, late)
	ps.wait(time.Second)
	ps.wantSync(t, 0, -1, "a push that came late")
	next()
	ps.must(t, 0, 2, next()) // passed on by another one
	ps.wait(time.Second)
	ps.wantSync(t, 0, 1, "a gap")
	ps.wantSync(t, 0, -1, "a second sync runs beside the first")
	next()
	ps.must(t, 0, 1, next()) // one more gap meanwhile
	ps.spaces[0].Sets()[0].Pushes().SyncDone(ps.machines[1].ID, ps.machines[1].ID, nil)
	ps.wantSync(t, 0, -1, "while the first one runs")
	ps.wait(500 * time.Millisecond)
	ps.wantSync(t, 0, 1, "the second gap")
	ps.spaces[0].Sets()[0].Pushes().SyncDone(ps.machines[1].ID, ps.machines[1].ID, errors.New("failed"))
	next()
	ps.must(t, 0, 1, next())
	ps.wait(500 * time.Millisecond)
	ps.wantSync(t, 0, -1, "soon after a failure")
	ps.wait(500 * time.Millisecond)
	if with := ps.syncs(0); with != 1 {
		t.Errorf("after a failure no sync follows: %d", with)
	}
}

// A namespace that is paused neither pushes nor hears; resumed, it tells its digest.
func TestPausedNamespacesPushNothing(t *testing.T) {
	ps := newPushers(2, Policy{})
	succeeds(t, ps.spaces[1].SetPaused(true))
	for _, ns := range ps.spaces {
		must(put(ns, "k", "v"))
	}
	ps.wait(5 * time.Second)
	if got := ps.pushes(1); got != nil {
		t.Errorf("it pushes %s", kinds(got))
	}
	if verdict, err := ps.hear(1, 0, ps.pushes(0)[0]); verdict != push.Ignored {
		t.Errorf("it hears: %d, %v", verdict, err)
	}
	succeeds(t, ps.spaces[1].SetPaused(false))
	if got := kinds(ps.pushes(1)); got != "digest" {
		t.Errorf("resumed, it pushes %s", got)
	}
}

// What is too large, or too much, is told of and not sent, whatever is waiting takes
// bounded memory, and once the flood is over records are pushed again.
func TestPushesAreBounded(t *testing.T) {
	ps := newPushers(2, Policy{Unsigned: true})
	succeeds(t, second(put(ps.spaces[1], "large", strings.Repeat("x", wire.MaxPush))))
	ps.wait(5 * time.Millisecond)
	if all := ps.pushes(1); kinds(all) != "more" {
		t.Fatalf("a large record is pushed as %s", kinds(all))
	}
	for i := range 400 {
		must(put(ps.spaces[1], fmt.Sprint("k", i), strings.Repeat("x", 10_000)))
	}
	if size := ps.spaces[1].Sets()[0].Pushes().Queued(); size > 1<<20 || size < 1<<19 {
		t.Errorf("%d bytes wait", size)
	}
	ps.wait(500 * time.Millisecond)
	all := ps.pushes(1)
	if left := ps.spaces[1].Sets()[0].Pushes().Queued(); left != 0 {
		t.Errorf("%d bytes wait after all were pushed", left)
	}
	for _, data := range all {
		if len(data) > wire.MaxPush {
			t.Errorf("a push of %d bytes", len(data))
		}
	}
	if k := kinds(all); !strings.HasSuffix(k, "records more") || len(all) < 10 {
		t.Errorf("the pushes are %s", k)
	}
	ps.must(t, 0, 1, all...)
	ps.wait(time.Second)
	ps.wantSync(t, 0, 1, "more")
	must(put(ps.spaces[1], "k", "v"))
	ps.wait(5 * time.Millisecond)
	if all := ps.pushes(1); kinds(all) != "records" {
		t.Errorf("after the flood: %s", kinds(all))
	}
}

// Sets that have been quiet tell their digests, one of equal ones for all; one that
// differs leads to a sync, but not where they have come to be equal meanwhile.
func TestDigestsAreTold(t *testing.T) {
	ps := newPushers(3, Policy{})
	write := func() {
		must(put(ps.spaces[1], "k", "v"))
		ps.wait(5 * time.Millisecond)
		ps.must(t, 0, 1, ps.pushes(1)...)
	}
	write() // node 2 does not hear of it
	ps.wait(3 * time.Second)
	digest := ps.pushes(1)
	if kinds(digest) != "digest" {
		t.Fatalf("a quiet set tells %s", kinds(digest))
	}
	ps.must(t, 0, 1, digest...)
	if got := ps.pushes(0); got != nil {
		t.Errorf("what was told is told again: %s", kinds(got))
	}
	ps.must(t, 2, 1, digest...)
	ps.wait(time.Second)
	ps.wantSync(t, 2, 1, "another digest")
	succeeds(t, ps.machines[2].turn(ps.spaces[2], ps.machines[1]))
	ps.spaces[2].Sets()[0].Pushes().SyncDone(ps.machines[1].ID, ps.machines[1].ID, nil)
	ps.must(t, 2, 1, digest...)
	ps.wait(time.Second)
	ps.wantSync(t, 2, -1, "equal digests")
	write()
	ps.wait(3 * time.Second)
	ps.pushes(2)
	ps.must(t, 2, 1, ps.pushes(1)...)
	succeeds(t, ps.machines[2].turn(ps.spaces[2], ps.machines[0]))
	ps.wait(time.Second)
	ps.wantSync(t, 2, -1, "what another sync has brought")
}

// A member whose role is over by its time is told nothing, and passes nothing on, though
// no admin has written that down.
func TestPushesAfterATerm(t *testing.T) {
	ps := newPushers(2, Policy{})
	over := ps.machines[0].Now().Add(time.Minute)
	succeeds(t, ps.spaces[0].SetRole(context.Background(), ps.machines[1].ID, RoleWrite, over, false))
	must(put(ps.spaces[1], "k", "v"))
	ps.wait(100 * time.Millisecond)
	late := ps.pushes(1)[0]
	if ids, until := ps.spaces[0].Audience(); len(ids) != 2 || !until.Equal(over) {
		t.Errorf("%d members, until %s, want 2 until %s", len(ids), until, over)
	}
	ps.machines[0].clock = over.Add(time.Second)
	if _, verdict, _ := ps.spaces[0].Sets()[0].Arrived(ps.machines[1].ID, late, false); verdict != push.Refused {
		t.Errorf("what comes from a member whose role is over: verdict %d", verdict)
	}
	if ids, until := ps.spaces[0].Audience(); len(ids) != 1 || !until.IsZero() {
		t.Errorf("%d members, until %s, want this node alone", len(ids), until)
	}
}

// A direct push is its sender's, and counts as one that came over the mesh: of pushes that
// go both ways the numbers are the same.
func TestDirectPushes(t *testing.T) {
	ps := newPushers(2, Policy{})
	next := func() *push.Push {
		must(put(ps.spaces[1], "k", "v"))
		ps.wait(push.Batch)
		p, _ := ps.spaces[1].Sets()[0].Pushes().Next()
		return p
	}
	hear := func(by int, data []byte) (push.Verdict, error) {
		a, verdict, err := ps.spaces[0].Sets()[0].Arrived(ps.machines[by].ID, data, true)
		if verdict == push.Taken {
			err = ps.spaces[0].Sets()[0].CommitArrivals(t.Context(), []*Arrival{a})
		}
		return verdict, err
	}
	if verdict, err := hear(1, next().Direct()); verdict != push.Taken || err != nil {
		t.Fatalf("%d, %v", verdict, err)
	}
	ps.must(t, 0, 1, next().Bytes())
	ps.wantSync(t, 0, -1, "nothing is missing")
	if verdict, err := hear(1, next().More().Direct()); verdict != push.Taken || err != nil {
		t.Fatalf("%d, %v", verdict, err)
	}
	ps.wait(push.Pause)
	ps.wantSync(t, 0, 1, "after a push that says that there is more")
	if verdict, err := hear(1, next().Bytes()); verdict != push.Refused || !errors.Is(err, wire.ErrFrame) {
		t.Errorf("a direct push that names an origin: %d, %v", verdict, err)
	}
	if _, verdict, err := ps.spaces[0].Sets()[0].Arrived(ps.machines[1].ID, next().Direct(), false); verdict != push.Refused || !errors.Is(err, wire.ErrFrame) {
		t.Errorf("a push of no origin over the mesh: %d, %v", verdict, err)
	}
	if _, verdict, err := ps.spaces[0].Sets()[0].Arrived("stranger", next().Direct(), true); verdict != push.Refused || !errors.Is(err, ErrDenied) {
		t.Errorf("a stranger's: %d, %v", verdict, err)
	}
	if r := must(get(ps.spaces[0], "k")); r.Version == (dbadapter.Version{}) {
		t.Error("nothing is held")
	}
}
