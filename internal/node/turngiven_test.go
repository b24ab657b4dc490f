package node

import (
	"errors"
	"testing"

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
