package node

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A node whose role has ended by its time names that, and not the denials that
// follow from it.
func TestDeniedAfterTheTerm(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	end := a.clock.Add(time.Minute)
	succeeds(t, sa.SetRole(t.Context(), b.ID, RoleWrite, end, false))
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	a.clock, b.clock = end.Add(time.Second), end.Add(time.Second)
	if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, ErrDenied) || !errors.Is(err, reconcile.ErrRemoved) || !strings.Contains(err.Error(), "given for a time") {
		t.Errorf("%v", err)
	}
}

// A member that a peer has not heard of shows its list, and both hold the same.
func TestUnheardMemberIsServed(t *testing.T) {
	a, b, sa, sb := newPair(RoleAdmin)
	c := newMachine(3)
	sc := must(c.join(b, invite(sb, RoleWrite))) // a has not heard of c
	must(put(sa, "a", "of a"))
	must(put(sc, "c", "of c"))
	if _, _, err := c.sync(sc, a, syncing.Ask{DryRun: true}); !errors.Is(err, ErrDenied) || sa.Members().Has(c.ID, RoleRead) {
		t.Errorf("a dry run: %v", err)
	}
	if r, _, err := c.sync(sc, a, syncing.Ask{}); err != nil || !r.Verified {
		t.Errorf("%+v, %v", r, err)
	}
	if list(sa) != list(sc) || fmt.Sprint(keysAndVersions(sa)) != fmt.Sprint(keysAndVersions(sc)) {
		t.Errorf("a holds %v of %s\nc holds %v of %s", keysAndVersions(sa), list(sa), keysAndVersions(sc), list(sc))
	}
	// The schedule does not sync the members again where nothing has changed.
	for range 2 {
		succeeds(t, c.turn(sc, a))
	}
	if sc.unlike(a.ID) {
		t.Error("equal lists are synced again with each turn")
	}
}

// A stranger that knows the secret can show statements, one conversation at a time,
// and is given nothing; one that does not is denied.
func TestStrangersShowTheirListsAlone(t *testing.T) {
	a, sa := newAlone()
	hello := func(keys reconcile.Keys, direction wire.Direction) *wire.Hello {
		live := must(sa.Sets()[0].Live.Snapshot(t.Context(), sa.Sets()[0].Store, nil))
		defer live.Close()
		s := reconcile.Initiate(live, reconcile.Options{Keys: keys, Self: []byte(idOf(9)), Remote: []byte(a.ID), Direction: direction})
		defer s.Close()
		h := *s.Next().Message.(*wire.Hello)
		return &h
	}
	if _, done, err := a.Answer(idOf(9), hello(sa.Control.Keys, wire.Push)); err != nil {
		t.Errorf("a stranger that knows the secret: %v", err)
	} else {
		wantErr(t, third(a.Answer(idOf(9), hello(sa.Control.Keys, wire.Push))), reconcile.ErrBusy, "twice at once")
		done()
	}
	wrong := sa.Control.Keys
	wrong.Secret[0] ^= 1
	for name, h := range map[string]*wire.Hello{
		"it asks for statements": hello(sa.Control.Keys, wire.Pull), "both ways": hello(sa.Control.Keys, wire.Both),
		"the data": hello(sa.Sets()[0].Keys, wire.Push), "without the secret": hello(wrong, wire.Push),
	} {
		if _, _, err := a.Answer(idOf(9), h); err != reconcile.ErrDenied { // the very answer that all strangers get
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A removed member is told by a peer, once it has proved the secret, and believes an
// admin's statement alone.
func TestRemovedMemberIsTold(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	c := newMachine(3)
	sc := must(c.join(a, invite(sa, RoleWrite)))
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	a.clock = noon.Add(time.Minute)
	succeeds(t, sa.Remove(t.Context(), b.ID, false))
	wantErr(t, third(b.sync(sb, c, syncing.Ask{})), nil, "a member that has not heard of it")
	if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, reconcile.ErrRemoved) || !strings.Contains(err.Error(), a.ID.String()) {
		t.Errorf("a sync after the removal: %v", err)
	}
	if r, removed := sb.Removal(); !removed || r.By != a.ID || !r.At.Equal(a.clock) {
		t.Errorf("it says of its removal %+v", r)
	}
	wantErr(t, second(put(sb, "k", "v")), reconcile.ErrRemoved, "it writes")
	// It is durable.
	succeeds(t, sb.Close())
	sb = must(b.open(sb.Sets()[0].Keys.Secret, must(DecodeState(must(sb.state.Load().Encode())))))
	if r, removed := sb.Removal(); !removed || r.By != a.ID {
		t.Errorf("opened again, it says %+v", r)
	}
	// A member that has not heard of the new grant tells of the removal once more,
	// and is shown the grant.
	succeeds(t, third(c.sync(sc, a, syncing.Ask{})))
	a.clock = noon.Add(2 * time.Minute)
	if again := must(b.join(a, invite(sa, RoleWrite))); again != sb {
		t.Fatal("another namespace was opened")
	}
	if r, removed := sb.Removal(); removed {
		t.Errorf("invited anew, it says %+v", r)
	}
	if _, _, err := b.sync(sb, c, syncing.Ask{}); err != nil || list(sc) != list(sb) {
		t.Errorf("with a member that has heard of the removal alone: %v", err)
	}
	// What is no admin's statement about this node is not believed.
	for name, d := range map[string]struct {
		author int
		draft  roster.Draft
	}{
		"of a writer":          {3, roster.Draft{Kind: roster.Remove, Subject: b.ID}},
		"about another member": {1, roster.Draft{Kind: roster.Remove, Subject: c.ID}},
		"no removal":           {1, roster.Draft{Kind: roster.Lapse, Subject: b.ID}},
	} {
		s := roster.Statement{Kind: d.draft.Kind, Subject: d.draft.Subject, Author: idOf(d.author), At: 7, Heads: []roster.Hash{{1}}}
		value := must(s.Sign(sb.Sets()[0].Keys.ID, func(message []byte) ([]byte, error) { return ed25519.Sign(keyOf(d.author), message), nil }))
		if err := sb.Heed(c.ID, [][]byte{value}); !errors.Is(err, ErrDenied) || errors.Is(err, reconcile.ErrRemoved) {
			t.Errorf("a statement %s: %v", name, err)
		}
		if _, removed := sb.Removal(); removed {
			t.Errorf("a statement %s was believed", name)
		}
	}
	wantErr(t, sb.Heed(c.ID, [][]byte{[]byte("?")}), ErrDenied, "no statement")
}
