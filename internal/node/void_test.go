package node

import (
	"context"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

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
			d := roster.Draft{Kind: roster.Grant, Subject: idOf(4), Role: RoleRead}
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
