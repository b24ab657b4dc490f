package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// An empty node that is cut off while it is sent everything goes on behind the key that
// it had come to, whichever side begins, with any peer and after a restart: each record
// travels once, but for those on the way. The sync that follows proves it.
func TestFilling(t *testing.T) {
	const records = 400
	for first := range 2 {
		c := newCrew(t, 2)
		for i := range records {
			c.put(0, fmt.Sprintf("k%03d", i), strings.Repeat("v", 10_000))
		}
		c.round()
		c.join(2, RoleWrite)
		empty := c.machines[2]
		empty.Bulk = Bulk{Note: 2000, PartsFrom: 100}
		for i := range c.machines[:2] {
			c.machines[i].Bulk.PartsFrom = 100
		}
		cut, admitted, attempts := errors.New("cut"), 0, 0
		sync := func() (mine, theirs reconcile.Report, err error) {
			from := attempts % 2 // the peers take turns
			if first == 1 {
				return c.machines[from].follow(empty, c.ns[from].Sets()[0].Course(empty.ID, Ask{}))
			}
			return empty.follow(c.machines[from], c.ns[2].Sets()[0].Course(c.machines[from].ID, Ask{}))
		}
		var states []*State
		empty.save = func(s *State) error { states = append(states, s.clone()); return nil }
		for ; ; attempts++ {
			left := 110
			empty.apply = func(ns dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
				if left -= len(writes); left < 0 {
					return nil, cut
				}
				admitted += len(writes)
				return ns.Apply(context.Background(), writes)
			}
			empty.apply = oneByOne(empty.apply)
			before := len(c.keys(2))
			mine, _, err := sync()
			if err == nil {
				if !mine.Verified {
					t.Errorf("first %d: %+v", first, mine)
				}
				break
			}
			if after := len(c.keys(2)); after <= before || attempts > 30 {
				t.Fatalf("first %d, attempt %d: %d records after %d, %v", first, attempts, after, before, err)
			}
			c.pass(time.Minute)
		}
		if got := len(c.keys(2)); got != records || attempts < 3 || admitted > records+attempts*60 {
			t.Errorf("first %d: %d records, %d admitted in %d attempts", first, got, admitted, attempts)
		}
		if len(states) < 3 || states[len(states)-1].FilledTo != nil || c.ns[2].state.Load().FilledTo != nil {
			t.Errorf("first %d: %d states; a node that is filled goes on behind a key", first, len(states))
		}
	}
}

// oneByOne hands over the writes of a batch in small ones.
func oneByOne(apply func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error)) func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error) {
	return func(ns dbadapter.Namespace, writes []dbadapter.Write) (outcomes []dbadapter.Outcome, err error) {
		for len(writes) > 0 {
			n := min(10, len(writes))
			some, err := apply(ns, writes[:n])
			if err != nil {
				return outcomes, err
			}
			outcomes, writes = append(outcomes, some...), writes[n:]
		}
		return outcomes, nil
	}
}

// What changed before the key, and what the node wrote itself, come with the sync that
// follows; so does a set that shares nothing with what came before.
func TestFillingIsAHint(t *testing.T) {
	c := newCrew(t, 2)
	for i := range 100 {
		c.put(0, fmt.Sprintf("k%03d", i), "1")
	}
	c.round()
	c.put(1, "k200", "own")
	if err := c.ns[1].Sets()[0].setFilledTo([]byte("k050")); err != nil {
		t.Fatal(err)
	}
	c.put(0, "a", "new")
	c.put(0, "k001", "2")
	c.put(0, "k150", "new")
	mine, _, err := c.machines[1].follow(c.machines[0], c.ns[1].Sets()[0].Course(c.machines[0].ID, Ask{}))
	if err != nil || !mine.Verified || !c.equal() || mine.Method != wire.MethodAll || mine.Applied != 3 || mine.Sent != 1 {
		t.Errorf("%+v, %v", mine, err)
	}
	if r, err := get(c.ns[1], "k001"); err != nil || string(r.Value) != "2" {
		t.Errorf("%s, %v", r.Value, err)
	}
	// Two nodes that are not filled begin nothing behind a key with one another.
	c.put(0, "b", "new")
	for _, ns := range c.ns {
		if err := ns.Sets()[0].setFilledTo([]byte("k050")); err != nil {
			t.Fatal(err)
		}
	}
	if mine, _, err = c.sync(Ask{}); err != nil || mine.Method != wire.MethodSketch || !mine.Verified || !c.equal() {
		t.Errorf("%+v, %v", mine, err)
	}
}

// A node that was away is given many records by one peer at a time: another is told to
// wait, and finds that little is left. So it is where it holds them in versions of a moment
// before, which the cells cannot tell from later ones.
func TestTurn(t *testing.T) {
	for _, changed := range []bool{false, true} {
		c := newCrew(t, 3)
		for i := range c.machines {
			if c.machines[i].Bulk = smallBulk; changed {
				c.machines[i].Bulk.PartsFrom = 0 // in one piece
			}
		}
		write := func(value string) {
			for i := range 300 {
				c.put(0, fmt.Sprint("k", i), value)
			}
		}
		if changed {
			write("0")
			c.round()
		}
		write("1")
		if err := c.turn(0, 1); err != nil {
			t.Fatal(err)
		}
		before, _, _ := c.ns[2].Sets()[0].Live.State()
		// In the middle of the sync with the first peer, the second calls, and is called.
		given, err := c.ns[2].Sets()[0].turn.take(c.machines[0].ID, false, c.ns[2].Sets()[0].turn.seen(c.machines[0].ID, false), true, c.machines[2].elapsed)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range [][2]int{{1, 2}, {2, 1}} {
			m, ns := c.machines[at[0]], c.ns[at[0]]
			if _, _, err := m.follow(c.machines[at[1]], ns.Sets()[0].Course(c.machines[at[1]].ID, Ask{})); !errors.Is(err, reconcile.ErrTurn) {
				t.Errorf("changed: %v: the node %d called while another peer has the turn: %v", changed, at[0], err)
			}
		}
		if now, _, _ := c.ns[2].Sets()[0].Live.State(); now != before {
			t.Errorf("changed: %v: records came out of turn", changed)
		}
		given.done(true, true)
		mine, _, err := c.machines[2].follow(c.machines[0], c.ns[2].Sets()[0].Course(c.machines[0].ID, Ask{}))
		if err != nil || !mine.Verified || mine.Applied != 300 {
			t.Errorf("changed: %v: %+v, %v", changed, mine, err)
		}
		c.pass(turnRest)
		mine, _, err = c.machines[1].follow(c.machines[2], c.ns[1].Sets()[0].Course(c.machines[2].ID, Ask{}))
		if err != nil || !mine.Verified || mine.Applied+mine.Sent != 0 {
			t.Errorf("changed: %v: after it: %+v, %v", changed, mine, err)
		}
	}
}

// The turn is one peer's until a moment after its last conversation; a sync waits for it
// longer than for a busy peer.
func TestTurnRests(t *testing.T) {
	now := time.Duration(0)
	clock := func() time.Duration { return now }
	var turn turn
	given, err := turn.take("a", true, 0, true, clock)
	if _, other := turn.take("b", true, 0, true, clock); err != nil || !errors.Is(other, reconcile.ErrTurn) || !errors.Is(other, reconcile.ErrBusy) {
		t.Fatalf("%v, %v", err, other)
	}
	again, err := turn.take("a", true, 0, true, clock)
	if err != nil {
		t.Fatal(err)
	}
	waits := func(id ID, large bool) bool { return turn.waits(id, true, large, now) != nil }
	given.done(true, true)
	if !waits("b", true) {
		t.Error("the turn is free while a conversation has it")
	}
	if !waits("b", false) || waits("c", false) {
		t.Error("not that peer waits, whatever its sync is, which would have given many records out of turn")
	}
	again.done(true, true)
	if !waits("b", true) || waits("a", true) {
		t.Error("the turn does not rest")
	}
	if now = turnRest; waits("b", true) {
		t.Error("b waits although the turn is free")
	}
	if _, err = turn.take("b", true, 0, true, clock); !errors.Is(err, reconcile.ErrTurn) {
		t.Errorf("b, which has begun before a has ended: %v", err)
	}
	if given, err = turn.take("b", true, turn.seen("b", true), true, clock); err != nil {
		t.Fatal(err)
	}
	if given.done(true, false); waits("a", true) {
		t.Error("the turn rests after a small sync")
	}
	n := newMachine(1).Node
	var retry BusyRetry
	if _, more := retry.Again(n, BusyPatience, reconcile.ErrTurn); !more {
		t.Error("a sync does not wait for its turn")
	}
	if _, more := retry.Again(n, TurnPatience, reconcile.ErrTurn); more {
		t.Error("a sync waits for its turn for ever")
	}
}
