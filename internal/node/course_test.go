package node

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The conversations of a sync, by what each one comes to.
func TestCourse(t *testing.T) {
	_, ns := newNotes(Policy{})
	lists, denied := reconcile.ErrListsDiffer, reconcile.ErrDenied
	for name, c := range map[string]struct {
		news bool // in the control namespace, since it was found equal
		ask  Ask
		says []error // of the conversations, in turn
		want string  // which those are: d data, D data though the lists differ, c control, i introduction
		err  error
	}{
		"equal lists":               {says: []error{nil}, want: "d"},
		"lists differ":              {says: []error{lists, nil, nil}, want: "dcd"},
		"and go on changing":        {says: []error{lists, nil, lists, nil, nil}, want: "dcdcD"},
		"for ever":                  {says: []error{lists, nil, lists, nil, lists}, want: "dcdcD", err: lists},
		"of the list itself":        {says: []error{lists, lists}, want: "dc", err: lists},
		"what can be is synced":     {says: []error{lists, ErrRejected, nil}, want: "dcd"},
		"the list is not proved":    {says: []error{lists, reconcile.ErrNotVerified, nil}, want: "dcd"},
		"unheard":                   {says: []error{denied, nil, lists, nil, nil}, want: "didcd"},
		"the peer has no such":      {says: []error{denied, denied}, want: "di", err: denied},
		"denied all the same":       {says: []error{denied, nil, denied}, want: "did", err: denied},
		"the peer is gone":          {says: []error{ErrUnreachable}, want: "d", err: ErrUnreachable},
		"it goes meanwhile":         {says: []error{lists, ErrUnreachable}, want: "dc", err: ErrUnreachable},
		"a dry run changes nothing": {ask: Ask{DryRun: true}, says: []error{denied}, want: "D", err: denied},
		"news beside the list":      {news: true, says: []error{nil, nil}, want: "cd"},
		"news, unheard":             {news: true, says: []error{denied, nil, nil, nil}, want: "cicd"},
		"news, and a dry run":       {news: true, ask: Ask{DryRun: true}, says: []error{nil}, want: "D"},
		"news, and a part":          {news: true, ask: Ask{Prefix: []byte("a")}, says: []error{nil}, want: "d"},
		"records are declined":      {says: []error{ErrRejected}, want: "d", err: ErrRejected},
		"the members alone":         {ask: Ask{Control: true}, says: []error{nil}, want: "c"},
	} {
		digest, _, _ := ns.Control.Live.State()
		if c.news {
			digest = dbadapter.Digest{}
		}
		ns.alike.note(idOf(writer), digest)
		course := ns.Sets()[0].Course(idOf(writer), c.ask)
		var got strings.Builder
		for i, err := range c.says {
			a, more := course.Next()
			if !more {
				break
			}
			switch {
			case a.Control && a.Direction == wire.Push:
				got.WriteString("i")
			case a.Control:
				got.WriteString("c")
			case a.ListsMayDiffer:
				got.WriteString("D")
			default:
				got.WriteString("d")
			}
			course.Ended(a, reconcile.Report{Sent: i}, err)
		}
		_, more := course.Next()
		report, err := course.Result()
		if more || got.String() != c.want || !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%s: %s, more %t, %v", name, &got, more, err)
		}
		if c.err == denied && !strings.Contains(err.Error(), "that node does not list this one") {
			t.Errorf("%s: %v does not say what the peer's denial means", name, err)
		}
		if err == nil && report.Sent != len(c.says)-1 {
			t.Errorf("%s: the report is that of conversation %d", name, report.Sent)
		}
	}
}

// A node whose role has ended by its time names that, and not the denials that
// follow from it.
func TestDeniedAfterTheTerm(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	end := a.clock.Add(time.Minute)
	if err := sa.SetRole(t.Context(), b.ID, RoleWrite, end); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.sync(sb, a, Ask{}); err != nil {
		t.Fatal(err)
	}
	a.clock, b.clock = end.Add(time.Second), end.Add(time.Second)
	if _, _, err := b.sync(sb, a, Ask{}); !errors.Is(err, ErrDenied) || !errors.Is(err, reconcile.ErrRemoved) || !strings.Contains(err.Error(), "given for a time") {
		t.Errorf("%v", err)
	}
}

// A member that a peer has not heard of shows its list, and both hold the same.
func TestUnheardMemberIsServed(t *testing.T) {
	a, b, c := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleAdmin)))
	sc := must(c.join(b, invite(sb, RoleWrite))) // a has not heard of c
	must(put(sa, "a", "of a"))
	must(put(sc, "c", "of c"))
	if _, _, err := c.sync(sc, a, Ask{DryRun: true}); !errors.Is(err, ErrDenied) || sa.Members().Has(c.ID, RoleRead) {
		t.Errorf("a dry run: %v", err)
	}
	if r, _, err := c.sync(sc, a, Ask{}); err != nil || !r.Verified {
		t.Errorf("%+v, %v", r, err)
	}
	if list(sa) != list(sc) || fmt.Sprint(keysAndVersions(sa)) != fmt.Sprint(keysAndVersions(sc)) {
		t.Errorf("a holds %v of %s\nc holds %v of %s", keysAndVersions(sa), list(sa), keysAndVersions(sc), list(sc))
	}
	// The schedule does not sync the members again where nothing has changed.
	for range 2 {
		if err := c.turn(sc, a); err != nil {
			t.Fatal(err)
		}
	}
	if step, _ := sc.Sets()[0].Course(a.ID, Ask{}).Next(); step.Control {
		t.Error("equal lists are synced again with each turn")
	}
}

// A stranger that knows the secret can show statements, one conversation at a time,
// and is given nothing; one that does not is denied.
func TestStrangersShowTheirListsAlone(t *testing.T) {
	a := newMachine(1)
	sa := a.create("notes", Policy{})
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
		if _, _, err := a.Answer(idOf(9), hello(sa.Control.Keys, wire.Push)); !errors.Is(err, reconcile.ErrBusy) {
			t.Errorf("twice at once: %v", err)
		}
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
	a, b, c := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	sc := must(c.join(a, invite(sa, RoleWrite)))
	if _, _, err := b.sync(sb, a, Ask{}); err != nil {
		t.Fatal(err)
	}
	a.clock = noon.Add(time.Minute)
	if err := sa.Remove(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.sync(sb, c, Ask{}); err != nil {
		t.Errorf("a member that has not heard of it: %v", err)
	}
	if _, _, err := b.sync(sb, a, Ask{}); !errors.Is(err, reconcile.ErrRemoved) || !strings.Contains(err.Error(), a.ID.String()) {
		t.Errorf("a sync after the removal: %v", err)
	}
	if r, removed := sb.Removal(); !removed || r.By != a.ID || !r.At.Equal(a.clock) {
		t.Errorf("it says of its removal %+v", r)
	}
	if _, err := put(sb, "k", "v"); !errors.Is(err, reconcile.ErrRemoved) {
		t.Errorf("it writes: %v", err)
	}
	// It is durable.
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	sb = must(b.open(sb.Sets()[0].Keys.Secret, must(DecodeState(must(sb.state.Load().Encode())))))
	if r, removed := sb.Removal(); !removed || r.By != a.ID {
		t.Errorf("opened again, it says %+v", r)
	}
	// A member that has not heard of the new grant tells of the removal once more,
	// and is shown the grant.
	if _, _, err := c.sync(sc, a, Ask{}); err != nil {
		t.Fatal(err)
	}
	a.clock = noon.Add(2 * time.Minute)
	if again := must(b.join(a, invite(sa, RoleWrite))); again != sb {
		t.Fatal("another namespace was opened")
	}
	if r, removed := sb.Removal(); removed {
		t.Errorf("invited anew, it says %+v", r)
	}
	if _, _, err := b.sync(sb, c, Ask{}); err != nil || list(sc) != list(sb) {
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
		if err := sb.heed(c.ID, [][]byte{value}); !errors.Is(err, ErrDenied) || errors.Is(err, reconcile.ErrRemoved) {
			t.Errorf("a statement %s: %v", name, err)
		}
		if _, removed := sb.Removal(); removed {
			t.Errorf("a statement %s was believed", name)
		}
	}
	if err := sb.heed(c.ID, [][]byte{[]byte("?")}); !errors.Is(err, ErrDenied) {
		t.Errorf("no statement: %v", err)
	}
}
