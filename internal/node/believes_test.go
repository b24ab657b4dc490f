package node

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// forged is a statement on top of one that no node has, so that it waits wherever it
// is shown.
func forged(ns *Namespace, author int, s roster.Statement) []byte {
	s.Author, s.At, s.Heads = idOf(author), 7, []roster.Hash{{1}}
	return must(s.Sign(ns.Sets()[0].Keys.ID, func(message []byte) ([]byte, error) { return ed25519.Sign(keyOf(author), message), nil }))
}

// Admin 1 has founded, and made admins of 2 and 3; 3 has made one of 4, and given 5
// the role write. A statement that waits ends a role only if its author may end
// it, also where another member shows it: only admins above end an admin's role.
func TestShownRemovalIsOfOneThatMay(t *testing.T) {
	machines := []*machine{nil, newMachine(1), newMachine(2), newMachine(3), newMachine(4), newMachine(5)}
	ns := []*Namespace{nil, machines[1].create("notes", Policy{}), nil, nil, nil, nil}
	for joiner, by := range map[int]struct {
		inviter int
		role    Role
	}{2: {1, RoleAdmin}, 3: {1, RoleAdmin}} {
		ns[joiner] = must(machines[joiner].join(machines[by.inviter], invite(ns[by.inviter], by.role)))
	}
	ns[4] = must(machines[4].join(machines[3], invite(ns[3], RoleAdmin)))
	ns[5] = must(machines[5].join(machines[3], invite(ns[3], RoleWrite)))
	for range 2 {
		for i := 2; i <= 5; i++ {
			succeeds(t, third(machines[i].sync(ns[i], machines[1], syncing.Ask{})))
		}
	}
	remove := func(subject int) roster.Statement {
		return roster.Statement{Kind: roster.Remove, Subject: idOf(subject)}
	}
	demote := func(subject int) roster.Statement {
		return roster.Statement{Kind: roster.Grant, Subject: idOf(subject), Role: RoleRead}
	}
	for name, c := range map[string]struct {
		to, by, from int
		s            roster.Statement
		believed     bool
	}{
		"the founder, by an admin below":              {1, 2, 2, remove(1), false},
		"the founder, by a key that an admin made up": {1, 9, 2, remove(1), false},
		"the founder, demoted":                        {1, 2, 2, demote(1), false},
		"an admin, by an equal":                       {2, 3, 3, remove(2), false},
		"an admin, by one below":                      {3, 4, 4, remove(3), false},
		"an admin, by a made-up key":                  {2, 9, 3, remove(2), false},
		"an admin's source, by an equal of it":        {4, 2, 2, remove(3), false},
		"the founder, for what it gave":               {2, 3, 3, remove(1), false},
		"an admin, by the founder":                    {2, 1, 5, remove(2), true},
		"an admin, by the founder over its source":    {4, 1, 5, remove(4), true},
		"an admin, by its source":                     {4, 3, 5, remove(4), true},
		"an admin's source, by the founder":           {4, 1, 5, remove(3), true},
		"an admin, by itself":                         {4, 4, 5, remove(4), true},
		"a writer, by any admin":                      {5, 2, 4, remove(5), true},
		"a writer, by an admin unheard of":            {5, 9, 2, remove(5), true},
	} {
		x := ns[c.to]
		err := x.Heed(idOf(c.from), [][]byte{forged(x, c.by, c.s)})
		if removed := x.Removal() != nil; removed != c.believed || errors.Is(err, reconcile.ErrRemoved) != c.believed {
			t.Errorf("%s: believed %t, want %t: %v", name, removed, c.believed, err)
		}
		held := x.Hold()
		err = held.ForgetRemoval()
		if held.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// An admin steps down, is removed by one that it had not heard of, and its disk is
// replaced by an older copy: shown both, by a member that is no admin, it believes them.
func TestCopyIsShownItsRemoval(t *testing.T) {
	_, b, _, sb := newPair(RoleAdmin)
	down := forged(sb, 2, roster.Statement{Kind: roster.Grant, Subject: b.ID, Role: roster.RoleRead})
	removal := forged(sb, 9, roster.Statement{Kind: roster.Remove, Subject: b.ID})
	if err := sb.Heed(idOf(5), [][]byte{removal}); errors.Is(err, reconcile.ErrRemoved) {
		t.Errorf("the removal alone is believed: %v", err)
	}
	if err := sb.Heed(idOf(5), [][]byte{down}); errors.Is(err, reconcile.ErrRemoved) {
		t.Errorf("a demotion is taken for a removal: %v", err)
	}
	if err := sb.Heed(idOf(5), [][]byte{down, removal}); !errors.Is(err, reconcile.ErrRemoved) {
		t.Error(err)
	}
	if r := sb.Removal(); r == nil || r.By != status.ID(idOf(9)) {
		t.Errorf("it says %+v", r)
	}
}

// An admin shows a writer alone a removal that no other node will ever hear of. It is
// removed itself, or another admin invites the writer anew: the writer is a member.
func TestShownRemovalEnds(t *testing.T) {
	for name, end := range map[string]func(a, c *machine, sa, sc *Namespace) error{
		"with the role of its author": func(a, c *machine, sa, sc *Namespace) error {
			if err := sa.Remove(t.Context(), idOf(2), false); err != nil {
				return err
			}
			_, _, err := c.sync(sc, a, syncing.Ask{})
			return err
		},
		"with an invitation": func(a, c *machine, sa, _ *Namespace) error {
			return second(c.join(a, invite(sa, RoleWrite)))
		},
	} {
		a, c := newMachine(1), newMachine(3)
		sa := a.create("notes", Policy{})
		succeeds(t, setRole(sa, idOf(2), RoleAdmin))
		sc := must(c.join(a, invite(sa, RoleWrite)))
		shown := forged(sc, 2, roster.Statement{Kind: roster.Remove, Subject: c.ID})
		if err := sc.Heed(idOf(2), [][]byte{shown}); !errors.Is(err, reconcile.ErrRemoved) {
			t.Fatal(err)
		}
		if err := end(a, c, sa, sc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r := sc.Removal(); r != nil {
			t.Errorf("%s: it takes itself for removed: %+v", name, r)
		}
		if _, err := put(sc, "k", "v"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each version is later than what the node said before, also where its clock
// was set back since, and after a restart.
func TestVersionsPassTau(t *testing.T) {
	a, ns := newAlone()
	a.clock = noon.Add(time.Minute)
	tau := must(ns.Sets()[0].gc.Tau(t.Context()))
	if tau == 0 {
		t.Fatal("it says nothing")
	}
	a.clock = noon.Add(-time.Minute)
	if v := must(ns.NextVersion()); v.Clock <= tau {
		t.Errorf("with its clock set back it makes the version %s, and has said %d", v, tau)
	}
	succeeds(t, ns.Close())
	ns = must(a.open(ns.Sets()[0].Keys.Secret, must(DecodeState(must(ns.state.Load().Encode())))))
	if v := must(ns.NextVersion()); v.Clock <= tau {
		t.Errorf("opened again, it makes the version %s", v)
	}
}

// A reading of the clock from before a change of the list of members is not greeted
// under the list after it.
func TestReadingOfAnEarlierList(t *testing.T) {
	c := newCrew(t, 2)
	ns, m := c.ns[0], c.machines[0]
	if s := must(ns.Sets()[0].gc.Greet(t.Context(), ns.Sets()[0].Lists)); s.Tau == 0 {
		t.Fatal("it says nothing")
	}
	now := m.Now
	m.Now = func() time.Time { // between the reading and the greeting
		m.Now = now
		succeeds(t, setRole(ns, c.machines[1].ID, RoleRead))
		return now()
	}
	if s := must(ns.Sets()[0].gc.Greet(t.Context(), ns.Sets()[0].Lists)); s.Tau != 0 || s.List != ns.Members().Digest() {
		t.Errorf("it greets with the reading %d and the list %x, which is %x now", s.Tau, s.List, ns.Members().Digest())
	}
}

// A node that was closed in order goes on with the machine's time: a write of it after a
// restart must not win over what others write seconds later.
func TestClockAfterAnOrderlyRestart(t *testing.T) {
	a, ns := newAlone()
	a.clock = noon.Add(time.Minute)
	tau := must(ns.Sets()[0].gc.Tau(t.Context()))
	succeeds(t, errors.Join(ns.Rest(t.Context()), ns.Close()))
	ns = must(a.open(ns.Sets()[0].Keys.Secret, must(DecodeState(must(ns.state.Load().Encode())))))
	v := must(ns.NextVersion())
	if ahead := v.Clock.Time().Sub(a.clock); ahead > time.Second || v.Clock <= tau {
		t.Errorf("opened again, it makes the version %s, %s ahead; it has said %d", v, ahead, tau)
	}
}
