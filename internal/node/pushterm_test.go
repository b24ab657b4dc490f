package node

import (
	"context"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/push"
)

// A member whose role is over by its time is told nothing, and passes nothing on, though
// no admin has written that down.
func TestPushesAfterATerm(t *testing.T) {
	ps := newPushers(2, Policy{})
	over := ps.machines[0].Now().Add(time.Minute)
	succeeds(t, ps.spaces[0].SetRole(context.Background(), ps.machines[1].ID, RoleWrite, over, false))
	must(put(ps.spaces[1], "k", "v"))
	ps.wait(100 * time.Millisecond)
	late := ps.pushes(1)[0]
	if ids, until := ps.spaces[0].Audience(); len(ids) != 2 || !until.Equal(over) {
		t.Errorf("%d members, until %s, want 2 until %s", len(ids), until, over)
	}
	ps.machines[0].clock = over.Add(time.Second)
	if _, verdict, _ := ps.spaces[0].Sets()[0].Arrived(ps.machines[1].ID, late, false); verdict != push.Refused {
		t.Errorf("what comes from a member whose role is over: verdict %d", verdict)
	}
	if ids, until := ps.spaces[0].Audience(); len(ids) != 1 || !until.IsZero() {
		t.Errorf("%d members, until %s, want this node alone", len(ids), until)
	}
}
