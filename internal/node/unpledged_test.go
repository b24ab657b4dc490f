package node

import (
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/watermark"
)

// A member that syncs and never pledges, an old or a hostile one, holds collection
// back: it is named, nothing is collected, and the others pledge no more than what
// waits gives them reason to.
func TestMemberThatNeverPledges(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "deleted", "1")
	c.round()
	rounds := func(n int) {
		for range n {
			for i := range c.ns {
				for j := range c.ns {
					if i == j {
						continue
					}
					c.pass(3 * time.Second)
					succeeds(t, c.turn(i, j))
				}
				if i != 2 {
					succeeds(t, c.machines[i].Tend(t.Context()))
				}
			}
		}
	}
	serials := func() (sum uint64) {
		for _, ns := range c.ns[:2] {
			sum += ns.Sets()[0].gc.State().Serial
		}
		return sum
	}
	// Deletions that go on make the others pledge in turn with them.
	for i := range 5 {
		c.del(0, "deleted")
		rounds(3)
		if i < 4 {
			c.put(0, "deleted", "1")
		}
	}
	before := serials()
	rounds(20)
	if more := serials() - before; more > 0 {
		t.Errorf("%d pledges of others while nothing has changed, after %d", more, before)
	}
	for i, ns := range c.ns[:2] {
		held := ns.Sets()[0].Collection()
		if held.Waiting == 0 || !held.Floor.IsZero() || len(held.Holding) != 1 || held.Holding[0].Member != c.machines[2].ID ||
			!strings.Contains(held.Holding[0].Reason, "has not said what it holds") || held.Holding[0].Synced.IsZero() {
			t.Errorf("%d: %+v", i, held)
		}
	}
	list, _ := c.ns[2].Sets()[0].waitedFor(c.ns[2].Members())
	// A pledge under another list, or beyond its own time, does not count.
	for what, p := range map[string]watermark.Pledge{
		"another list":  {List: [16]byte{1}, Vector: make([]dbadapter.Timestamp, 3), Serial: 1},
		"a short list":  {List: list, Vector: make([]dbadapter.Timestamp, 1), Serial: 2},
		"of the future": {List: list, Vector: make([]dbadapter.Timestamp, 3), Promised: ^dbadapter.Timestamp(0), Serial: 3},
	} {
		value := must(p.Encode())
		succeeds(t, say(c.ns[2], c.ns[2].Sets()[0].pledgeKey(), value))
		rounds(2)
		if held := c.ns[0].Sets()[0].Collection(); len(held.Holding) != 1 || held.Holding[0].Member != c.machines[2].ID || !held.Floor.IsZero() {
			t.Errorf("%s: %+v", what, held)
		}
	}
}
