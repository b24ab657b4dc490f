package syncing

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
)

// claims asks for the turn in a conversation that began when so many had brought many records.
func claims(turn *BulkTurn, id roster.ID, part bool, seen int, sure bool, clock func() time.Duration) (*Claim, error) {
	c := turn.Claim(id, part, turnFrom, clock)
	if c.seen = seen; sure {
		return c, c.Await(turnFrom, true)
	}
	return c, c.Expect(turnFrom)
}

// A peer that this node calls while it calls here gives its records once: a sync of
// everything has the turn alone, and one that began before it ended would be given the
// same again. Parts of one sync are given side by side.
func TestTurnOfTwoSyncsWithOnePeer(t *testing.T) {
	clock := func() time.Duration { return 0 }
	for _, first := range []bool{false, true} {
		var turn BulkTurn
		began, beganPart := turn.count("a", false), turn.count("a", true)
		given, err := claims(&turn, "a", first, began, true, clock)
		if err != nil {
			t.Fatal(err)
		}
		take := func(part bool, since int) error {
			given, err := claims(&turn, "a", part, since, true, clock)
			if err == nil {
				given.End(false, false, false)
			}
			return err
		}
		if err := take(false, began); !errors.Is(err, reconcile.ErrTurn) {
			t.Errorf("part %v: beside it: %v", first, err)
		}
		if turn.Claim("a", false, turnFrom, clock).Open(false) == nil {
			t.Errorf("part %v: the second looks again for what was found", first)
		}
		if err := take(true, beganPart); errors.Is(err, reconcile.ErrTurn) == first {
			t.Errorf("part %v: a part beside it: %v", first, err)
		}
		given.End(false, false, true)
		if err := take(false, began); !errors.Is(err, reconcile.ErrTurn) {
			t.Errorf("part %v: begun before it ended: %v", first, err)
		}
		if err := take(true, beganPart); err != nil {
			t.Errorf("part %v: a part after it: %v", first, err)
		}
		if err := take(false, turn.count("a", false)); err != nil {
			t.Errorf("part %v: begun after it: %v", first, err)
		}
	}
}

// A turn that was taken for more records than come is given back once their number is
// known, and counts for no sync that began before.
func TestTurnTakenForNothing(t *testing.T) {
	var turn BulkTurn
	clock := func() time.Duration { return 0 }
	other, c := turn.Claim("b", false, turnFrom, clock), turn.Claim("a", false, turnFrom, clock)
	other.Look()
	c.Look()
	if err := c.Expect(turnFrom); err != nil {
		t.Fatal(err)
	}
	if err := other.Expect(turnFrom); !errors.Is(err, reconcile.ErrTurn) {
		t.Errorf("beside it: %v", err)
	}
	if err := other.Expect(turnFrom - 1); err != nil {
		t.Errorf("a few beside it: %v", err)
	}
	for _, all := range []bool{false, true} {
		if err := c.Await(3, all); err != nil {
			t.Fatal(err)
		}
		if c.granted == all {
			t.Errorf("all are known: %v, and it has the turn: %v", all, c.granted)
		}
	}
	if err := other.Await(turnFrom, true); err != nil {
		t.Errorf("after it: %v", err)
	}
	if err := c.Await(turnFrom, true); !errors.Is(err, reconcile.ErrTurn) {
		t.Errorf("beside the other: %v", err)
	}
	if !other.granted {
		t.Error("it has not kept the turn")
	}
}

// A peer that is refused for an estimate is heard a minute later, though the turn is not
// free: the node that is being given much may have to give. One that was refused for what
// was found waits for the turn.
func TestTurnInDoubt(t *testing.T) {
	for _, sure := range []bool{false, true} {
		var turn BulkTurn
		now := time.Duration(0)
		clock := func() time.Duration { return now }
		given, err := claims(&turn, "a", false, 0, true, clock)
		if err != nil {
			t.Fatal(err)
		}
		for minute := range 3 {
			for _, wait := range []time.Duration{0, TurnDoubt / 2} {
				heard := minute > 0 && wait == 0 && !sure
				now = time.Duration(minute)*TurnDoubt + wait
				if err := given.Applied(turnFrom, 0); err != nil {
					t.Fatal(err)
				}
				if waits := minute+int(wait) > 0 && turn.Claim("b", false, turnFrom, clock).Open(false) != nil; waits == heard && minute+int(wait) > 0 {
					t.Errorf("sure: %v: %s later it waits: %v", sure, now, waits)
				}
				if given, err := claims(&turn, "b", false, 0, sure, clock); (err == nil) != heard || given.granted {
					t.Errorf("sure: %v: %s later: %v", sure, now, err)
				}
			}
		}
	}
}

// The turn is one peer's until a moment after its last conversation; a sync waits for it
// longer than for a busy peer.
func TestTurnRests(t *testing.T) {
	now := time.Duration(0)
	clock := func() time.Duration { return now }
	var turn BulkTurn
	given, err := claims(&turn, "a", true, 0, true, clock)
	if _, other := claims(&turn, "b", true, 0, true, clock); err != nil || !errors.Is(other, reconcile.ErrTurn) || !errors.Is(other, reconcile.ErrBusy) {
		t.Fatalf("%v, %v", err, other)
	}
	again, err := claims(&turn, "a", true, 0, true, clock)
	if err != nil {
		t.Fatal(err)
	}
	waits := func(id roster.ID, part bool) bool { return turn.Claim(id, part, turnFrom, clock).Open(false) != nil }
	given.End(false, false, true)
	if !waits("b", true) {
		t.Error("the turn is free while a conversation has it")
	}
	if !waits("b", false) || waits("c", false) {
		t.Error("not that peer waits, whatever its sync is, which would have given many records out of turn")
	}
	again.End(false, false, true)
	if !waits("b", true) || waits("a", true) {
		t.Error("the turn does not rest")
	}
	if now = TurnRest; waits("b", true) {
		t.Error("b waits although the turn is free")
	}
	if _, err = claims(&turn, "b", true, 0, true, clock); !errors.Is(err, reconcile.ErrTurn) {
		t.Errorf("b, which has begun before a has ended: %v", err)
	}
	if given, err = claims(&turn, "b", true, turn.count("b", true), true, clock); err != nil {
		t.Fatal(err)
	}
	if given.End(false, false, false); waits("a", true) {
		t.Error("the turn rests after a small sync")
	}
	retry := Backoff{Jitter: spread}
	if _, more := retry.Again(BusyPatience, reconcile.ErrTurn); !more {
		t.Error("a sync does not wait for its turn")
	}
	if _, more := retry.Again(TurnPatience, reconcile.ErrTurn); more {
		t.Error("a sync waits for its turn for ever")
	}
}
