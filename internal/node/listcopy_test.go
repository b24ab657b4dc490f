package node

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

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
// list that it had, and syncs with both others, whoever calls.
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
