package shards

import (
	"context"
	"errors"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A member that is asked about more sets than the time suffices for is not away: it has answered.
func TestClusterInTime(t *testing.T) {
	inCluster(t, 2, func(t *testing.T, c *cluster) {
		q := inquiry{c.hosts[0].shards, &ask.Inquiry{
			Kinds: func(byte) []status.TroubleKind { return nil },
			Ask: func(ctx context.Context, about ask.About, id node.ID, _ wire.Question) (ask.Answered, error) {
				return ask.Answered{Reply: &wire.Reply{Answer: &wire.StatusAnswer{}}}, ctx.Err()
			},
		}}
		m := &status.ClusterMember{ID: status.ID(c.hosts[1].ID)}
		first := &setCopy{MemberShard: status.MemberShard{Host: true}, of: m}
		ctx, cancel := context.WithCancel(t.Context())
		if got := q.member(ctx, m, []*setCopy{first}); len(got) != 1 || first.Problem != nil || m.Problem != nil {
			t.Fatalf("%+v, %v", first, m.Problem)
		}
		next := &setCopy{MemberShard: status.MemberShard{Number: 1, Host: true}, set: 1, of: m}
		heard := true
		cancel()
		q.rest(ctx, m, []*setCopy{next}, &heard)
		if m.Problem != nil || !errors.Is(next.Problem, errNotAsked) {
			t.Errorf("a member that has answered, and the time is over: %v, %v", m.Problem, next.Problem)
		}
		heard = false
		q.rest(ctx, m, []*setCopy{next}, &heard)
		if m.Problem == nil {
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
