package node

import (
	"errors"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A direct push is its sender's, and counts as one that came over the mesh: of pushes that
// go both ways the numbers are the same.
func TestDirectPushes(t *testing.T) {
	ps := newPushers(2, Policy{})
	next := func() *push.Push {
		must(put(ps.spaces[1], "k", "v"))
		ps.wait(push.Batch)
		p, _ := ps.spaces[1].Sets()[0].Pushes().Next()
		return p
	}
	hear := func(by int, data []byte) (push.Verdict, error) {
		a, verdict, err := ps.spaces[0].Sets()[0].Arrived(ps.machines[by].ID, data, true)
		if verdict == push.Taken {
			err = ps.spaces[0].Sets()[0].CommitArrivals(t.Context(), []*Arrival{a})
		}
		return verdict, err
	}
	if verdict, err := hear(1, next().Direct()); verdict != push.Taken || err != nil {
		t.Fatalf("%d, %v", verdict, err)
	}
	ps.must(t, 0, 1, next().Bytes())
	ps.wantSync(t, 0, -1, "nothing is missing")
	if verdict, err := hear(1, next().More().Direct()); verdict != push.Taken || err != nil {
		t.Fatalf("%d, %v", verdict, err)
	}
	ps.wait(push.Pause)
	ps.wantSync(t, 0, 1, "after a push that says that there is more")
	if verdict, err := hear(1, next().Bytes()); verdict != push.Refused || !errors.Is(err, wire.ErrFrame) {
		t.Errorf("a direct push that names an origin: %d, %v", verdict, err)
	}
	if _, verdict, err := ps.spaces[0].Sets()[0].Arrived(ps.machines[1].ID, next().Direct(), false); verdict != push.Refused || !errors.Is(err, wire.ErrFrame) {
		t.Errorf("a push of no origin over the mesh: %d, %v", verdict, err)
	}
	if _, verdict, err := ps.spaces[0].Sets()[0].Arrived("stranger", next().Direct(), true); verdict != push.Refused || !errors.Is(err, ErrDenied) {
		t.Errorf("a stranger's: %d, %v", verdict, err)
	}
	if r := must(get(ps.spaces[0], "k")); r.Version == (dbadapter.Version{}) {
		t.Error("nothing is held")
	}
}
