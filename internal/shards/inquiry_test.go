package shards

import (
	"context"
	"errors"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A member that is asked about more sets than the time suffices for is not away: it has answered.
func TestClusterInTime(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		answers := 1 // until the time is over
		q := inquiry{c.hosts[0].shards, &ask.Inquiry{
			Kinds: func(byte) []status.TroubleKind { return nil },
			Ask: func(ctx context.Context, about ask.About, id node.ID, _ wire.Question) (ask.Answered, error) {
				if answers--; answers < 0 {
					cancel()
				}
				return ask.Answered{Reply: &wire.Reply{Subject: wire.SubjectStatus, Answer: &wire.StatusAnswer{}}}, ctx.Err()
			},
		}}
		asked := func() (m *status.ClusterMember, copies []*setCopy) {
			m = &status.ClusterMember{ID: status.ID(c.hosts[1].ID)}
			for set := range placement.Shard(2) {
				copies = append(copies, &setCopy{MemberShard: status.MemberShard{Number: int(set), Host: true}, set: set, of: m})
			}
			return m, q.member(ctx, m, copies)
		}
		if m, got := asked(); m.Problem != nil || len(got) != 2 || got[0].Problem != nil || !errors.Is(got[1].Problem, errNotAsked) {
			t.Errorf("a member that has answered, and the time is over: %v, %+v", m.Problem, got)
		}
		if m, _ := asked(); m.Problem == nil {
			t.Error("a member that has not answered within the time counts as there")
		}
	})
}

// What members say of several shards adds up to no nonsense.
func TestClusterSums(t *testing.T) {
	by, liars, honest := make([][]*setCopy, 4096), []*setCopy(nil), []*setCopy(nil)
	for set := range by {
		for records, of := range map[uint64]*[]*setCopy{1<<64 - 1: &liars, 5: &honest} {
			one := &setCopy{MemberShard: status.MemberShard{Number: set}}
			one.take(&wire.StatusAnswer{Sum: dbadapter.Sum{Records: records}})
			*of, by[set] = append(*of, one), append(by[set], one)
		}
	}
	var l, h status.ClusterMember
	compare(&l, liars, by)
	compare(&h, honest, by)
	if l.Records <= 0 || h.Records != 5*4096 || h.Missing <= 0 || l.Missing != 0 {
		t.Errorf("%d and %d records, %d and %d are missing", l.Records, h.Records, l.Missing, h.Missing)
	}
}
