package node

import (
	"bytes"
	"context"
	"errors"
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
