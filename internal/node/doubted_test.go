package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// While a node is given much by one peer, a sync with another one that an estimate says may
// bring much, and which does not, is held a minute later: all of it, of which cells are
// asked for more than once.
func TestSyncInDoubtIsHeldOnceAMinute(t *testing.T) {
	for _, n := range []int{150, 250} {
		for _, from := range []int{1, 2} {
			c := newCrew(t, 3)
			for i := range n {
				c.put(2, fmt.Sprint("k", i), "0")
				c.put(1, fmt.Sprint("l", i), "0")
			}
			given(c.machines[2], c.ns[2], c.machines[0].ID)
			held := false
			for range 3 {
				_, _, err := c.machines[from].converse(c.ns[from], c.machines[3-from], syncing.Ask{})
				if held = err == nil; held {
					break
				}
				if !errors.Is(err, reconcile.ErrTurn) {
					t.Fatal(err)
				}
				c.pass(syncing.TurnDoubt + time.Second)
			}
			if !held {
				t.Errorf("%d records each way, node %d calls: no sync is held", n, from)
			}
		}
	}
}
