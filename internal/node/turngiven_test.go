package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

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
