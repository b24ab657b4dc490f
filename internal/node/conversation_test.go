package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// helloOf is the first message of a sync that a node begins.
func helloOf(t *testing.T, ns *Namespace, remote ID) (*Conversation, *wire.Hello) {
	t.Helper()
	c := must(ns.Sets()[0].Initiate(t.Context(), remote, syncing.Ask{}, nil))
	m, _, err := wire.Read(bytes.NewReader(c.Session.Next().Frame))
	if err != nil {
		t.Fatal(err)
	}
	return c, m.(*wire.Hello)
}

// someHello is what Answer looks at of a first message.
func someHello(ns *Namespace) *wire.Hello {
	return &wire.Hello{Version: wire.Version, Mapping: rateless.MappingVersion, Namespace: ns.Sets()[0].Keys.ID}
}

// A stranger, a member of another namespace, and a member that asks for what is
// not there get one and the same answer.
func TestAnswerTellsStrangersNothing(t *testing.T) {
	a, b, sa, sb := newPair(RoleRead)
	private := a.create("private", Policy{})
	c, hello := helloOf(t, sb, a.ID)
	c.End(nil) // or the empty node would still have its turn
	d, another := helloOf(t, sb, a.ID)
	d.End(nil)
	if hello.Nonce == (wire.Nonce{}) || hello.Nonce == another.Nonce {
		t.Errorf("the nonces are %x and %x", hello.Nonce, another.Nonce)
	}
	there, done, err := a.Answer(b.ID, hello)
	if err != nil || there != &sa.Sets()[0].Part {
		t.Fatalf("a member: %v", err)
	}
	done()
	elsewhere, nowhere, older := *hello, *hello, *hello
	elsewhere.Namespace = private.Sets()[0].Keys.ID
	nowhere.Namespace = dbadapter.NamespaceID{9}
	older.Version--
	for name, c := range map[string]struct {
		from  ID
		hello *wire.Hello
	}{
		"a stranger":                   {idOf(9), hello},
		"a member of another":          {b.ID, &elsewhere},
		"a member, for what there not": {b.ID, &nowhere},
		"no id":                        {"", hello},
	} {
		if part, done, err := a.Answer(c.from, c.hello); err != ErrDenied || part != nil || done != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantErr(t, third(a.Answer(idOf(9), &older)), reconcile.ErrVersion, "another version")
	// Only a member is called; never this node itself.
	for _, id := range []ID{idOf(9), b.ID, ""} {
		if err := sb.MayCall(id); !errors.Is(err, ErrDenied) {
			t.Errorf("b may call %x: %v", id, err)
		}
	}
	succeeds(t, sb.MayCall(a.ID))
	// A namespace that is dropped is not there, and its members are strangers.
	if !a.IsMember(b.ID) || a.IsMember(idOf(9)) {
		t.Error("the members are not those of the namespaces")
	}
	a.Forget(sa)
	if _, _, err := a.Answer(b.ID, hello); !errors.Is(err, ErrDenied) || a.IsMember(b.ID) {
		t.Errorf("a namespace that is gone: %v", err)
	}
}

// As many syncs of one peer run as have a place; one that is over makes room.
func TestAnswerTakesPlaces(t *testing.T) {
	a, b, sa, sb := newPair(RoleRead)
	c, hello := helloOf(t, sb, a.ID)
	defer c.End(nil)
	var leave []func()
	for range a.Places.PerPeer {
		_, done, err := a.Answer(b.ID, hello)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, done)
	}
	wantErr(t, third(a.Answer(b.ID, hello)), reconcile.ErrBusy, "one too many")
	leave[0]()
	_, done, err := a.Answer(b.ID, hello)
	if err != nil {
		t.Fatalf("after one is over: %v", err)
	}
	done()
	leave[1]()
	// The answer reaches the initiator as what it is.
	succeeds(t, setRole(sa, b.ID, RoleRead))
	defer sa.Sets()[0].Call(b.ID, syncing.Ask{})()
	_, _, err = b.sync(sb, a, syncing.Ask{})
	if busy := a.ID < b.ID; errors.Is(err, reconcile.ErrBusy) != busy {
		t.Errorf("a calls, and has the lower id: %t; b's sync: %v", busy, err)
	}
}

// The end of a conversation gives back what it held, also one that was cut; the
// driver's error stays.
func TestEnd(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	must(put(sb, "k", "v"))
	cut := errors.New("the connection broke")
	for _, ask := range []syncing.Ask{{}, {Prefix: []byte("k")}} {
		c := must(sb.Sets()[0].Initiate(t.Context(), a.ID, ask, nil))
		c.Session.Next()
		wantErr(t, second(c.End(cut)), cut, "a sync that was cut")
	}
	// So it is with those that ran to their end, on both sides, or were turned away.
	for _, ask := range []syncing.Ask{{}, {Prefix: []byte("k")}, {DryRun: true}} {
		succeeds(t, third(b.sync(sb, a, ask)))
	}
	must(put(sa, "l", "v"))
	for range a.Places.Sessions {
		_, done, err := a.Answer(b.ID, someHello(sa))
		if err == nil {
			defer done()
		}
	}
	wantErr(t, third(b.sync(sb, a, syncing.Ask{})), reconcile.ErrBusy, "without a place")
	if a.opened != 0 || b.opened != 0 {
		t.Errorf("%d and %d snapshots are left open", a.opened, b.opened)
	}
	succeeds(t, sb.Sets()[0].Store.Close())
	wantErr(t, second(sb.Sets()[0].Initiate(t.Context(), a.ID, syncing.Ask{}, nil)), dbadapter.ErrClosed, "of a closed store")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sa.Sets()[0].Grow(ctx, nil); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Two nodes that push, and were proved to hold the same, sync at every fifth interval,
// until one of them changes what it holds.
func TestEqualPairsRest(t *testing.T) {
	ps := newPushers(2, Policy{})
	m, ns, remote := ps.machines[0], ps.spaces[0], ps.machines[1].ID
	turns := func(intervals int) (n int) {
		for range intervals {
			ps.wait(m.Interval)
			if ns.Sets()[0].Rests(remote) {
				continue
			}
			n++
			succeeds(t, m.turn(ns, ps.machines[1]))
		}
		return n
	}
	turns(2) // they may sync what is not alike yet
	if n := turns(30); n != 30/syncing.EqualRest {
		t.Errorf("an equal pair syncs %d times in 30 intervals", n)
	}
	turns(1)
	must(put(ns, "k", "v"))
	if ns.Sets()[0].Rests(remote) {
		t.Error("what this node has written waits")
	}
	m.Push.On = false
	if n := turns(5); n != 5 {
		t.Errorf("without pushes an equal pair syncs %d times in 5 intervals", n)
	}
}

// A member that does not push, whatever it writes, is synced with at each interval: nothing
// else would tell of that.
func TestMembersThatDoNotPushLetNoPairRest(t *testing.T) {
	ps := newPushers(3, Policy{})
	m, ns := ps.machines[0], ps.spaces[0]
	m.Pushes = func(id ID) bool { return id == ps.machines[2].ID }
	for i := 1; i < 3; i++ {
		for range 3 { // they may sync what is not alike yet
			succeeds(t, m.turn(ns, ps.machines[i]))
		}
		if rests := ns.Sets()[0].Rests(ps.machines[i].ID); rests != (i == 2) {
			t.Errorf("member %d, equal a moment ago, rests: %v", i, rests)
		}
	}
}

// A dry run proves what differs, and does not let the two rest.
func TestDryRunsLetNoPairRest(t *testing.T) {
	ps := newPushers(2, Policy{})
	for range 2 { // they may sync what is not alike yet
		must(put(ps.spaces[0], "k", "v"))
		succeeds(t, ps.machines[0].turn(ps.spaces[0], ps.machines[1]))
	}
	must(put(ps.spaces[0], "l", "v"))
	if found, _, err := ps.machines[0].sync(ps.spaces[0], ps.machines[1], syncing.Ask{DryRun: true}); err != nil || !found.Verified || found.MissingThere != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	for i := range 2 {
		if ps.spaces[i].Sets()[0].Rests(ps.machines[1-i].ID) {
			t.Errorf("node %d rests, though the two are known to differ", i)
		}
	}
}

// many records are given in turn.
const many = 256

// given is the turn of a peer, which gives the node many records.
func given(m *machine, ns *Namespace, from ID) *syncing.Claim {
	c := ns.Sets()[0].bulk.Claim(from, false, many, m.elapsed)
	c.Look()
	if err := c.Await(many, true); err != nil {
		panic(err)
	}
	return c
}

// An empty node that cannot open its replica gives its turn back, whichever side calls: the
// next peer may fill it.
func TestTurnOfASyncThatDoesNotBegin(t *testing.T) {
	for _, calls := range []bool{true, false} {
		c := newCrew(t, 2)
		for i := range 40 {
			c.put(0, string(rune('a'+i)), "1")
		}
		c.round()
		c.join(2, RoleWrite)
		empty, ns := c.machines[2], c.ns[2]
		empty.Bulk = smallBulk
		unopened := errors.New("too many open files")
		empty.unopened = unopened
		if calls {
			_, err := ns.Sets()[0].Initiate(t.Context(), c.machines[0].ID, syncing.Ask{}, nil)
			if !errors.Is(err, unopened) {
				t.Fatal(err)
			}
		} else if _, theirs, err := c.machines[0].converse(c.ns[0], empty, syncing.Ask{}); !errors.Is(err, reconcile.ErrPeer) {
			t.Fatal(err, theirs)
		}
		empty.unopened = nil
		if mine, _, err := empty.syncPart(&ns.Sets()[0].Part, c.machines[1], syncing.Ask{}); err != nil || mine.Applied != 40 {
			t.Errorf("calls: %v: the next peer: %v, %+v", calls, err, mine)
		}
	}
}

// A sync that would bring many records out of turn is refused before the cells travel that
// would find them, whichever side calls.
func TestTurnBeforeCells(t *testing.T) {
	for _, calls := range []bool{true, false} {
		c := newCrew(t, 3)
		for _, value := range []string{"0", "1"} {
			for i := range 1000 {
				c.put(0, fmt.Sprint("k", i), value)
			}
			succeeds(t, c.turn(0, 1))
			if value == "0" {
				c.round()
			}
		}
		ns := c.ns[2]
		turn := given(c.machines[2], ns, c.machines[0].ID)
		from, to := 2, 1
		if !calls {
			from, to = 1, 2
		}
		mine, theirs, err := c.machines[from].converse(c.ns[from], c.machines[to], syncing.Ask{})
		if !errors.Is(err, reconcile.ErrTurn) {
			t.Errorf("calls: %v: it ends with %v", calls, err)
		}
		// The Hello has as many as it usually has, and the estimator may need 64 more.
		if most := reconcile.FirstCells + 64; mine.Cells > most || theirs.Cells > most || mine.Estimate+theirs.Estimate == 0 {
			t.Errorf("calls: %v: %d and %d cells travelled, of an estimate of %d and %d", calls, mine.Cells, theirs.Cells, mine.Estimate, theirs.Estimate)
		}
		succeeds(t, turn.Applied(many, 0))
		turn.End(false, false, false)
		if mine, _, err := c.machines[2].converse(ns, c.machines[0], syncing.Ask{}); err != nil || mine.Applied != 1000 {
			t.Errorf("calls: %v: then the first gives %d, %v", calls, mine.Applied, err)
		}
	}
}
