package node

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

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
			_, err := ns.Initiate(t.Context(), c.machines[0].ID, Ask{}, nil)
			if !errors.Is(err, unopened) {
				t.Fatal(err)
			}
		} else if _, theirs, err := c.machines[0].converse(c.ns[0], empty, Ask{}); !errors.Is(err, reconcile.ErrPeer) {
			t.Fatal(err, theirs)
		}
		empty.unopened = nil
		if mine, _, err := empty.follow(ns, c.machines[1], ns.Course(c.machines[1].ID, Ask{})); err != nil || mine.Applied != 40 {
			t.Errorf("calls: %v: the next peer: %v, %+v", calls, err, mine)
		}
	}
}

// A peer that this node calls while it calls here gives its records once: a sync of
// everything has the turn alone, and one that began before it ended would be given the
// same again. Parts of one sync are given side by side.
func TestTurnOfTwoSyncsWithOnePeer(t *testing.T) {
	clock := func() time.Time { return noon }
	for _, first := range []bool{false, true} {
		var turn turn
		began, beganPart := turn.since("a", false), turn.since("a", true)
		done, err := turn.take("a", first, began, clock)
		if err != nil {
			t.Fatal(err)
		}
		take := func(part bool, since int) error {
			give, err := turn.take("a", part, since, clock)
			if err == nil {
				give(false)
			}
			return err
		}
		if err := take(false, began); !errors.Is(err, reconcile.ErrTurn) {
			t.Errorf("part %v: beside it: %v", first, err)
		}
		if !turn.waits("a", false, false, noon) {
			t.Errorf("part %v: the second looks again for what was found", first)
		}
		if err := take(true, beganPart); errors.Is(err, reconcile.ErrTurn) == first {
			t.Errorf("part %v: a part beside it: %v", first, err)
		}
		done(true)
		if err := take(false, began); !errors.Is(err, reconcile.ErrTurn) {
			t.Errorf("part %v: begun before it ended: %v", first, err)
		}
		if err := take(true, beganPart); err != nil {
			t.Errorf("part %v: a part after it: %v", first, err)
		}
		if err := take(false, turn.since("a", false)); err != nil {
			t.Errorf("part %v: begun after it: %v", first, err)
		}
	}
}
