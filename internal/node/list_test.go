package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// A node that was away while an admin made many statements gets them in no order,
// and has them all with the next sync.
func TestListAfterAbsence(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	for i := range 300 {
		succeeds(t, setRole(sa, idOf(100+i), RoleRead))
	}
	if _, _, err := b.sync(sb, a, syncing.Ask{}); err != nil || list(sa) != list(sb) {
		t.Errorf("%d members of %d: %v", len(sb.Members().Members()), len(sa.Members().Members()), err)
	}
}

// So it has those of admins that were made meanwhile: what it declined, since it had
// not heard of their author, is offered again once it has.
func TestListAfterAbsenceOfNewAdmins(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	c := newMachine(3)
	sc := must(c.join(a, invite(sa, RoleAdmin)))
	for i := range 300 {
		succeeds(t, setRole(sc, idOf(100+i), RoleRead))
	}
	if _, _, err := a.sync(sa, c, syncing.Ask{}); err != nil || list(sa) != list(sc) {
		t.Fatal(err)
	}
	for range 2 {
		succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	}
	if list(sa) != list(sb) {
		t.Errorf("%d members of %d", len(sb.Members().Members()), len(sa.Members().Members()))
	}
}

// An admin writes down what has expired, as far as it may: the role of an admin that
// it is not above keeps no other from ending.
func TestExpiryOfAnEqual(t *testing.T) {
	a, b, sa, sb := newPair(RoleAdmin)
	for i := range 8 {
		succeeds(t, sa.SetRole(context.Background(), idOf(50+i), RoleWrite+Role(i%2), noon.Add(time.Minute), false))
	}
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	b.clock = noon.Add(time.Hour)
	succeeds(t, b.Tend(context.Background()))
	for i := range 8 {
		if role := sb.Members().Role(idOf(50 + i)); i%2 == 0 && role != 0 {
			t.Errorf("node %d still has the role %s", i, role)
		}
	}
}

// An admin that was told of its removal makes no statement, though its own list
// does not hold the removal: no other node would count it.
func TestRemovedAdminStatesNothing(t *testing.T) {
	a, b, sa, sb := newPair(RoleAdmin)
	succeeds(t, sa.Remove(context.Background(), b.ID, false))
	if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, reconcile.ErrRemoved) {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"set":    setRole(sb, idOf(9), RoleRead),
		"remove": sb.Remove(context.Background(), b.ID, false),
		"lapse":  sb.Lapse(context.Background(), a.ID),
	} {
		if !errors.Is(err, reconcile.ErrRemoved) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What a former member has said of itself goes, so that a node that joins later and
// one that was there before find their control namespaces equal.
func TestFormerMembersSayNothing(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	c := newMachine(3)
	for _, ns := range []*Namespace{sa, sb} {
		succeeds(t, ns.Announce(t.Context(), [][]byte{{1}}))
	}
	succeeds(t, b.turn(sb, a))
	succeeds(t, sa.Remove(t.Context(), b.ID, false))
	sc := must(c.join(a, invite(sa, RoleWrite)))
	tend := func(m *machine) {
		t.Helper()
		succeeds(t, m.Tend(t.Context()))
	}
	tend(a)
	for range 2 {
		succeeds(t, c.turn(sc, a))
	}
	if sc.unlike(a.ID) || !hasAddress(sc, a.ID) || hasAddress(sa, b.ID) {
		t.Error("the control namespaces are not found equal")
	}

	// A member again, it is where it was: it has kept what it said.
	succeeds(t, setRole(sa, b.ID, RoleRead))
	tend(a)
	succeeds(t, b.turn(sb, a))
	tend(b)
	if err := b.turn(sb, a); err != nil || !hasAddress(sa, b.ID) {
		t.Error("the address of a member that has come back is not known", err)
	}
}

func hasAddress(ns *Namespace, id ID) bool {
	_, err := ns.Control.Get(membership.Key(membership.KindAddresses, id))
	return err == nil
}

// A node refuses a write that the others would decline: the role ends by its time before a
// statement says so, or begins later by the clock of the admin that gave it anew.
func TestWritesThatTheRoleDoesNotCover(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	c := newMachine(3)
	sc := must(c.join(a, invite(sa, RoleWrite)))
	role := func(m *machine, ns *Namespace, change error) {
		t.Helper()
		if change != nil {
			t.Fatal(change)
		}
		succeeds(t, third(m.sync(ns, a, syncing.Ask{Control: true})))
	}
	role(b, sb, sa.SetRole(t.Context(), b.ID, RoleWrite, noon.Add(time.Minute), false))
	succeeds(t, second(put(sb, "in time", "")))
	b.clock = noon.Add(time.Hour)
	wantErr(t, second(put(sb, "late", "")), ErrDenied, "a write after the role's end")

	role(c, sc, setRole(sa, c.ID, RoleRead))
	a.clock = noon.Add(time.Hour)
	role(c, sc, setRole(sa, c.ID, RoleWrite))
	wantErr(t, second(put(sc, "early", "")), ErrDenied, "a write before the role begins")
	c.clock = a.clock
	succeeds(t, second(put(sc, "in time again", "")))
}

// loseStatements takes statements out of the control namespace, as damage does.
func loseStatements(t *testing.T, ns *Namespace, lost func(i int) bool) {
	t.Helper()
	var writes []dbadapter.Write
	for i, value := range ns.statements() {
		if lost(i) {
			writes = append(writes, dbadapter.Write{Record: must(statementOf(ns, value)), Action: dbadapter.Collect})
		}
	}
	if outcomes := must(ns.Control.Store.Apply(t.Context(), writes)); outcomes[0].Result != dbadapter.Applied {
		t.Fatal("no statement was there to be lost")
	}
}

// One of three nodes loses all statements of the list of members, or the first one, or
// the one that lists itself, while it is stopped. It starts with the
// list that it had. It syncs with both others, as the caller and as the one that is called.
func TestLostStatements(t *testing.T) {
	for what, lost := range map[string]func(i int) bool{
		"all":         func(int) bool { return true },
		"the first":   func(i int) bool { return i == 0 },
		"the last":    func(i int) bool { return i == 2 },
		"all but one": func(i int) bool { return i != 1 },
	} {
		t.Run(what, func(t *testing.T) {
			c := newCrew(t, 3)
			ns, m := c.ns[2], c.machines[2]
			want := list(ns)
			loseStatements(t, ns, lost)
			ns = m.reopen(ns, false)
			c.ns[2] = ns
			if got := list(ns); got != want {
				t.Errorf("it lists %s, and listed %s", got, want)
			}
			for i, pair := range [][2]int{{2, 0}, {1, 2}, {2, 1}, {0, 2}} {
				c.put(pair[0], fmt.Sprint("k", i), "v")
				if err := c.turn(pair[0], pair[1]); err != nil {
					t.Errorf("node %d calls node %d: %v", pair[0], pair[1], err)
				}
			}
		})
	}
}

// The copy is kept with each change, and put right at an opening; one that holds what is
// not signed, or lacks something, changes nothing.
func TestCopyOfTheList(t *testing.T) {
	c := newCrew(t, 2)
	ns, m := c.ns[0], c.machines[0]
	if len(m.listed[ns.Sets()[0].Keys.Secret]) != 2 {
		t.Errorf("%d statements are in the copy", len(m.listed[ns.Sets()[0].Keys.Secret]))
	}
	succeeds(t, setRole(ns, c.machines[1].ID, RoleRead))
	whole, want := m.listed[ns.Sets()[0].Keys.Secret], list(ns)
	if len(whole) != 3 {
		t.Errorf("%d statements are in the copy", len(whole))
	}
	forged := append([]byte(nil), whole[2]...)
	forged[len(forged)-1] ^= 1
	for _, listed := range [][][]byte{nil, whole[:1], whole[2:], {forged, nil, []byte("x")}} {
		m.listed[ns.Sets()[0].Keys.Secret] = listed
		ns = m.reopen(ns, false)
		if got := list(ns); got != want {
			t.Errorf("it lists %s, and listed %s", got, want)
		}
		if rosterOf(ns).Has(roster.HashOf(forged)) || len(m.listed[ns.Sets()[0].Keys.Secret]) != 3 {
			t.Errorf("%d statements are in the copy", len(m.listed[ns.Sets()[0].Keys.Secret]))
		}
	}
}
