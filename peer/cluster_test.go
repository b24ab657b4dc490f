package peer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// clusterOf is what a node says of all members, by their ids.
func clusterOf(t *testing.T, ns *peer.Namespace) map[peer.ID]status.ClusterMember {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	all, err := ns.Cluster(ctx)
	must(t, err)
	by := map[peer.ID]status.ClusterMember{}
	for _, m := range all {
		by[m.ID] = m
	}
	return by
}

// A node tells of each member what it says of itself, how it compares with this one, and
// of one that is away what is known here.
func TestCluster(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	late := func() time.Time { return clock.now().Add(-2 * time.Minute) }
	na := open(t, peer.Config{Clock: clock.now, Program: "v1"})
	nb := open(t, peer.Config{Dir: t.TempDir(), Clock: clock.now, Program: "v2"})
	nc, nd := open(t, peer.Config{Clock: late}), open(t, peer.Config{Clock: clock.now})
	sa := create(t, na, peer.Policy{})
	put(t, sa, "first", "1")
	sb := join(t, sa, nb, peer.RoleWrite)
	sc := join(t, sa, nc, peer.RoleRead)
	join(t, sa, nd, peer.RoleRead)
	sync1(t, sa, nb.ID())
	put(t, sa, "second", "2")
	sync1(t, sa, nb.ID())
	proof := clock.now()
	must(t, nd.Close(t.Context()))
	clock.turn(time.Minute)
	put(t, sa, "third", "3")
	put(t, sb, "fourth", "4")
	sync1(t, sb, na.ID())
	eventually(t, "the called side has noted the sync", func() bool {
		v := clusterOf(t, sa)[nb.ID()].Verified
		return v != nil && v.Differences == 2
	})
	clock.turn(time.Second)

	by := clusterOf(t, sa)
	if len(by) != 4 {
		t.Fatalf("%d members", len(by))
	}
	if self := by[na.ID()]; !self.Self || !self.Equal || self.Problem != nil || self.Records != 4 || self.Program != "v1" || self.Verified != nil || self.Proof == nil || self.Proof.With != nb.ID() {
		t.Errorf("of itself: %+v", self)
	}
	if b := by[nb.ID()]; b.Problem != nil || !b.Equal || b.Missing != 0 || b.Behind != 0 || b.Records != 4 || b.Digest != sa.Info().Digest || b.Program != "v2" || b.Taken == 0 || b.Free == 0 ||
		b.Role != "write" || b.Proof == nil || b.Proof.With != na.ID() || b.Proof.Differences != 2 || b.Verified == nil || b.Verified.Differences != 2 || b.Verified.At.Sub(proof).Abs() > 2*time.Minute || b.Offset.Abs() > b.OffsetError || b.Took <= 0 {
		t.Errorf("of a member that is equal: %+v, %+v, %+v", b, b.Proof, b.Verified)
	}
	if c := by[nc.ID()]; c.Problem != nil || c.Equal || c.Missing != 3 || c.Behind < 30*time.Second || c.Records != 1 || (c.Offset-2*time.Minute).Abs() > c.OffsetError || c.Program != "" || c.Taken != 0 {
		t.Errorf("of a member that is behind: %+v", c)
	}
	if d := by[nd.ID()]; !errors.Is(d.Problem, peer.ErrUnreachable) || d.Equal || d.Records != 0 || d.Verified == nil {
		t.Errorf("of a member that is away: %+v", d)
	}
	for _, m := range clusterOf(t, sc) { // which asks members that have never met it
		if m.Problem == nil && !m.Self && m.Equal || m.Self && m.Records != 1 {
			t.Errorf("as the one behind sees it: %+v", m)
		}
	}
	if names := na.Unproved(time.Hour); len(names) != 0 {
		t.Errorf("not proved within an hour: %v", names)
	}
	clock.turn(2 * time.Hour)
	if names := na.Unproved(time.Hour); len(names) != 1 || names[0] != "notes" {
		t.Errorf("not proved within an hour, two hours later: %v", names)
	}
}
