package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// An empty node that is cut off while it is sent everything goes on where it was, whichever
// side begins and with any peer: each record travels once, but for those on the way.
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
		for i := range c.machines {
			c.machines[i].Bulk.PartsFrom = 100
		}
		cut, admitted, attempts := errors.New("cut"), 0, 0
		sync := func() (mine, theirs reconcile.Report, err error) {
			from := attempts % 2 // the peers take turns
			if first == 1 {
				return c.machines[from].syncPart(&c.ns[from].Sets()[0].Part, empty, syncing.Ask{})
			}
			return empty.syncPart(&c.ns[2].Sets()[0].Part, c.machines[from], syncing.Ask{})
		}
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
		succeeds(t, c.turn(0, 1))
		before, _, _ := c.ns[2].Sets()[0].Live.State()
		// In the middle of the sync with the first peer, the second calls, and is called.
		turn := given(c.machines[2], c.ns[2], c.machines[0].ID)
		for _, at := range [][2]int{{1, 2}, {2, 1}} {
			m, ns := c.machines[at[0]], c.ns[at[0]]
			if _, _, err := m.syncPart(&ns.Sets()[0].Part, c.machines[at[1]], syncing.Ask{}); !errors.Is(err, reconcile.ErrTurn) {
				t.Errorf("changed: %v: the node %d called while another peer has the turn: %v", changed, at[0], err)
			}
		}
		if now, _, _ := c.ns[2].Sets()[0].Live.State(); now != before {
			t.Errorf("changed: %v: records came out of turn", changed)
		}
		turn.End(false, false, true)
		mine, _, err := c.machines[2].syncPart(&c.ns[2].Sets()[0].Part, c.machines[0], syncing.Ask{})
		if err != nil || !mine.Verified || mine.Applied != 300 {
			t.Errorf("changed: %v: %+v, %v", changed, mine, err)
		}
		c.pass(syncing.TurnRest)
		mine, _, err = c.machines[1].syncPart(&c.ns[1].Sets()[0].Part, c.machines[2], syncing.Ask{})
		if err != nil || !mine.Verified || mine.Applied+mine.Sent != 0 {
			t.Errorf("changed: %v: after it: %+v, %v", changed, mine, err)
		}
	}
}
