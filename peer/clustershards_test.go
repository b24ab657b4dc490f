package peer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
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
