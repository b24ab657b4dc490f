package node

import (
	"errors"
	"fmt"
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
			_, err := ns.Sets()[0].Initiate(t.Context(), c.machines[0].ID, Ask{}, nil)
			if !errors.Is(err, unopened) {
				t.Fatal(err)
			}
		} else if _, theirs, err := c.machines[0].converse(c.ns[0], empty, Ask{}); !errors.Is(err, reconcile.ErrPeer) {
			t.Fatal(err, theirs)
		}
		empty.unopened = nil
		if mine, _, err := empty.follow(c.machines[1], ns.Sets()[0].Course(c.machines[1].ID, Ask{})); err != nil || mine.Applied != 40 {
			t.Errorf("calls: %v: the next peer: %v, %+v", calls, err, mine)
		}
	}
}

// A peer that this node calls while it calls here gives its records once: a sync of
// everything has the turn alone, and one that began before it ended would be given the
// same again. Parts of one sync are given side by side.
func TestTurnOfTwoSyncsWithOnePeer(t *testing.T) {
	clock := func() time.Duration { return 0 }
	for _, first := range []bool{false, true} {
		var turn turn
		began, beganPart := turn.seen("a", false), turn.seen("a", true)
		given, err := turn.take("a", first, began, true, clock)
		if err != nil {
			t.Fatal(err)
		}
		take := func(part bool, since int) error {
			given, err := turn.take("a", part, since, true, clock)
			if err == nil {
				given.done(true, false)
			}
			return err
		}
		if err := take(false, began); !errors.Is(err, reconcile.ErrTurn) {
			t.Errorf("part %v: beside it: %v", first, err)
		}
		if turn.waits("a", false, false, 0) == nil {
			t.Errorf("part %v: the second looks again for what was found", first)
		}
		if err := take(true, beganPart); errors.Is(err, reconcile.ErrTurn) == first {
			t.Errorf("part %v: a part beside it: %v", first, err)
		}
		given.done(true, true)
		if err := take(false, began); !errors.Is(err, reconcile.ErrTurn) {
			t.Errorf("part %v: begun before it ended: %v", first, err)
		}
		if err := take(true, beganPart); err != nil {
			t.Errorf("part %v: a part after it: %v", first, err)
		}
		if err := take(false, turn.seen("a", false)); err != nil {
			t.Errorf("part %v: begun after it: %v", first, err)
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
			if err := c.turn(0, 1); err != nil {
				t.Fatal(err)
			}
			if value == "0" {
				c.round()
			}
		}
		ns := c.ns[2]
		given, err := ns.Sets()[0].turn.take(c.machines[0].ID, false, ns.Sets()[0].turn.seen(c.machines[0].ID, false), true, c.machines[2].elapsed)
		if err != nil {
			t.Fatal(err)
		}
		from, to := 2, 1
		if !calls {
			from, to = 1, 2
		}
		mine, theirs, err := c.machines[from].converse(c.ns[from], c.machines[to], Ask{})
		if !errors.Is(err, reconcile.ErrTurn) {
			t.Errorf("calls: %v: it ends with %v", calls, err)
		}
		// The Hello has as many as it usually has, and the estimator may need 64 more.
		if most := reconcile.FirstCells + 64; mine.Cells > most || theirs.Cells > most || mine.Estimate+theirs.Estimate == 0 {
			t.Errorf("calls: %v: %d and %d cells travelled, of an estimate of %d and %d", calls, mine.Cells, theirs.Cells, mine.Estimate, theirs.Estimate)
		}
		given.applied(turnFrom, 0, turnFrom)
		given.done(true, false)
		if mine, _, err := c.machines[2].converse(ns, c.machines[0], Ask{}); err != nil || mine.Applied != 1000 {
			t.Errorf("calls: %v: then the first gives %d, %v", calls, mine.Applied, err)
		}
	}
}

// A turn that was taken for more records than come is given back once their number is
// known, and counts for no sync that began before.
func TestTurnTakenForNothing(t *testing.T) {
	ns := newMachine(1).create("notes", Policy{})
	other := &Conversation{part: &ns.Sets()[0].Part, remote: "b", seen: ns.Sets()[0].turn.seen("b", false)}
	c := &Conversation{part: &ns.Sets()[0].Part, remote: "a", seen: ns.Sets()[0].turn.seen("a", false)}
	if err := c.expect(turnFrom); err != nil {
		t.Fatal(err)
	}
	if err := other.expect(turnFrom); !errors.Is(err, reconcile.ErrTurn) {
		t.Errorf("beside it: %v", err)
	}
	if err := other.expect(turnFrom - 1); err != nil {
		t.Errorf("a few beside it: %v", err)
	}
	for _, all := range []bool{false, true} {
		if err := c.await(3, all); err != nil {
			t.Fatal(err)
		}
		if held := c.grant.Load() != nil; held == all {
			t.Errorf("all are known: %v, and it has the turn: %v", all, held)
		}
	}
	if err := other.await(turnFrom, true); err != nil {
		t.Errorf("after it: %v", err)
	}
	if err := c.await(turnFrom, true); !errors.Is(err, reconcile.ErrTurn) {
		t.Errorf("beside the other: %v", err)
	}
	if other.grant.Load() == nil {
		t.Error("it has not kept the turn")
	}
}

// A peer that is refused for an estimate is heard a minute later, though the turn is not
// free: the node that is being given much may have to give. One that was refused for what
// was found waits for the turn.
func TestTurnInDoubt(t *testing.T) {
	for _, sure := range []bool{false, true} {
		var turn turn
		now := time.Duration(0)
		clock := func() time.Duration { return now }
		given, err := turn.take("a", false, 0, true, clock)
		if err != nil {
			t.Fatal(err)
		}
		for minute := range 3 {
			for _, wait := range []time.Duration{0, turnDoubt / 2} {
				heard := minute > 0 && wait == 0 && !sure
				now = time.Duration(minute)*turnDoubt + wait
				given.applied(turnFrom, 0, turnFrom)
				if waits := minute+int(wait) > 0 && turn.waits("b", false, false, now) != nil; waits == heard && minute+int(wait) > 0 {
					t.Errorf("sure: %v: %s later it waits: %v", sure, now, waits)
				}
				if given, err := turn.take("b", false, 0, sure, clock); (err == nil) != heard || given != nil {
					t.Errorf("sure: %v: %s later: %v", sure, now, err)
				}
			}
		}
	}
}
