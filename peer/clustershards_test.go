package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// asked is what a node is told of all members, by the numbers of their nodes.
func (c *routedCluster) asked(i int) map[int]status.ClusterMember {
	c.t.Helper()
	all, err := c.spaces[i].Cluster(c.t.Context())
	c.must(err)
	by := map[int]status.ClusterMember{}
	for _, m := range all {
		by[slices.IndexFunc(c.nodes, func(n *Node) bool { return n.ID() == m.ID })] = m
	}
	return by
}

// A node tells of each member what it holds of each shard, beside the others that hold the shard:
// of shards that it does not hold itself, too, and of members that hold none.
func TestClusterShards(t *testing.T) {
	t.Parallel()
	for _, kind := range []placement.Kind{placement.Hash, placement.Prefix} {
		t.Run(kind.String(), func(t *testing.T) {
			c := newClusterOf(t, kind, 5, Config{NoPush: true})
			ticket, err := c.spaces[0].Invite(t.Context(), InviteOptions{Role: RoleRead})
			c.must(err)
			config := c.base
			config.Dir, config.Registerer = t.TempDir(), nil
			reader := openForTest(t, config)
			ns, err := reader.Join(t.Context(), ticket)
			c.must(err)
			c.nodes, c.spaces = append(c.nodes, reader), append(c.spaces, ns)
			c.round()
			for k := range 40 {
				_, err := c.put(k%5, fmt.Sprint("key ", k), "v", All)
				c.must(err)
			}
			for _, asker := range []int{0, 3, 5} {
				records := int64(0)
				for i, m := range c.asked(asker) {
					sets := len(c.spaces[i].shards())
					if m.Problem != nil || !m.Equal || m.Missing != 0 || m.Self != (i == asker) || !m.SameList || len(m.Shards) != sets {
						t.Errorf("node %d says of %d, which holds %d sets: %+v", asker, i, sets, m)
					}
					for _, s := range m.Shards {
						if !s.Equal || s.Copies != 2 || !s.Host || s.Problem != nil {
							t.Errorf("node %d says of %d: %+v", asker, i, s)
						}
						records += s.Records
					}
				}
				if records != 2*40 {
					t.Errorf("node %d says that %d copies of 40 records are held", asker, records)
				}
			}
		})
	}
}

// A shard whose hosts hold different records differs at both. Where a host is away, what the
// other one holds is not called equal.
func TestClusterShardsDiffer(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	for k := range 20 {
		_, err := c.put(k%5, fmt.Sprint("key ", k), "v", All)
		c.must(err)
	}
	hosts, others := c.hosts("alone")
	number := int(c.spaces[0].core.Home([]byte("alone")))
	c.now.Add(int64(time.Minute))
	c.write(hosts[0], "alone", "v")
	for _, asker := range []int{hosts[0], hosts[1], others[0]} {
		for i, m := range c.asked(asker) {
			host := slices.Contains(hosts, i)
			behind := i == hosts[1]
			if m.Problem != nil || m.Equal == host || m.Missing > 0 != behind || m.Behind > 0 != behind {
				t.Errorf("node %d says of %d: %+v", asker, i, m)
			}
			for _, s := range m.Shards {
				copies, missing := 2, int64(0)
				if s.Number == number {
					copies = 1
				}
				if s.Number == number && behind {
					missing = 1
				}
				if s.Equal != (copies == 2) || s.Copies != copies || s.Missing != missing {
					t.Errorf("node %d says of %d: %+v", asker, i, s)
				}
			}
		}
	}
	c.must(c.nodes[hosts[1]].Close(t.Context()))
	all := c.asked(others[0])
	if away := all[hosts[1]]; !errors.Is(away.Problem, ErrUnreachable) || away.Equal || len(away.Shards) == 0 || slices.ContainsFunc(away.Shards, func(s status.MemberShard) bool { return s.Problem == nil || s.Equal || s.Copies > 0 }) {
		t.Errorf("a member that is away: %+v", away)
	}
	if m := all[hosts[0]]; m.Problem != nil || m.Equal || m.Missing != 0 {
		t.Errorf("a member whose shard has its other host away: %+v", m)
	}
}

// A member that is asked about more sets than the time suffices for is not away: it has answered.
func TestClusterShardsInTime(t *testing.T) {
	c := newRoutedCluster(t, 2)
	all := c.asked(0)
	m := &status.ClusterMember{ID: all[1].ID, Role: all[1].Role}
	first := &setCopy{MemberShard: status.MemberShard{Host: true}, of: m}
	ctx, cancel := context.WithCancel(t.Context())
	copies := []*setCopy{first}
	if got := c.spaces[0].inquireOf(ctx, m, copies); len(got) != 1 || first.Problem != nil || m.Problem != nil {
		t.Fatalf("%+v, %v", first, m.Problem)
	}
	next := &setCopy{MemberShard: status.MemberShard{Number: 1, Host: true}, set: 1, of: m}
	heard := true
	cancel()
	c.spaces[0].inquireRest(ctx, m, []*setCopy{next}, &heard)
	if m.Problem != nil || !errors.Is(next.Problem, errNotAsked) {
		t.Errorf("a member that has answered, and the time is over: %v, %v", m.Problem, next.Problem)
	}
	heard = false
	c.spaces[0].inquireRest(ctx, m, []*setCopy{next}, &heard)
	if m.Problem == nil {
		t.Error("a member that has not answered within the time counts as there")
	}
}

// What members say of several shards adds up to no nonsense.
func TestClusterShardsSums(t *testing.T) {
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
