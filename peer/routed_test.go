package peer

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// routedCluster is nodes of one namespace of eight shards, each of which two of them hold.
// Nothing is pushed, and nothing synced any more.
type routedCluster struct {
	*shardCluster
	metrics []*prometheus.Registry
}

func newRoutedCluster(t testing.TB, size int) *routedCluster {
	t.Helper()
	return newClusterOf(t, placement.Hash, size, Config{NoPush: true})
}

func newClusterOf(t testing.TB, kind placement.Kind, size int, base Config) *routedCluster {
	t.Helper()
	return newReplicatedCluster(t, kind, size, 2, base)
}

// newReplicatedCluster is one whose shards have so many hosts each.
func newReplicatedCluster(t testing.TB, kind placement.Kind, size, replicas int, base Config) *routedCluster {
	t.Helper()
	c := &routedCluster{shardCluster: newShardCluster(t, 0, base)}
	c.kind, c.replicas = kind, replicas
	var all []int
	for i := range size {
		c.metrics = append(c.metrics, prometheus.NewRegistry())
		c.base.Registerer = c.metrics[i]
		c.join()
		all = append(all, i)
	}
	c.settle(all...)
	return c
}

// hosts are the numbers of a key's hosts, and others those of the other nodes.
func (c *routedCluster) hosts(key string) (hosts, others []int) {
	c.t.Helper()
	named := c.spaces[0].core.Row(c.spaces[0].core.Home([]byte(key))).Hosts()
	for i, n := range c.nodes {
		if slices.Contains(named, node.ID(n.ID())) {
			hosts = append(hosts, i)
		} else {
			others = append(others, i)
		}
	}
	if len(hosts) != 2 {
		c.t.Fatalf("%q has the hosts %v", key, hosts)
	}
	return hosts, others
}

// first is the first host of a key.
func (c *routedCluster) first(key string) int {
	hosts, _ := c.hosts(key)
	return hosts[0]
}

// counted is what a node has counted under a label's value; 0 if it has not counted that yet.
func (c *routedCluster) counted(i int, name, value string) int {
	c.t.Helper()
	families, err := c.metrics[i].Gather()
	c.must(err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetValue() == value {
					return int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return 0
}

// held is what a node holds itself under a key.
func (c *routedCluster) held(i int, key string) *dbadapter.Record {
	c.t.Helper()
	sh, err := c.spaces[i].numbered(c.spaces[i].core.Home([]byte(key)))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	c.must(err)
	r, err := sh.set.Held([]byte(key))
	c.must(err)
	return r
}

func (c *routedCluster) put(i int, key, value string, ack Level) (dbadapter.Version, error) {
	return c.spaces[i].Put(c.t.Context(), []byte(key), []byte(value), Ack(ack))
}

// A value is written and read at each node at each level, and a tombstone, too; each host holds what
// a write at level all has acknowledged. A condition that does not hold is ErrConflict.
func TestRoutedReadsAndWrites(t *testing.T) {
	c := newReplicatedCluster(t, placement.Hash, 5, 3, Config{NoPush: true})
	for i := range c.nodes {
		ns, key := c.spaces[i], []byte(fmt.Sprint("key ", i))
		for _, level := range []Level{One, Quorum, All, 2} {
			value := fmt.Sprint("at ", level)
			v, err := ns.Put(t.Context(), key, []byte(value), Ack(level))
			c.must(err)
			for j := range c.nodes {
				read := level
				if level == 2 || level == One {
					read = All
				}
				r, err := c.spaces[j].Get(t.Context(), key, Read(read), AtLeast(v))
				if err != nil || string(r.Value) != value || r.Version != v {
					t.Fatalf("key %s at level %s, read at %d: %q, %v", key, level, j, r.Value, err)
				}
			}
		}
		held, err := ns.Get(t.Context(), key)
		c.must(err)
		if _, err := ns.PutIf(t.Context(), key, []byte("x"), dbadapter.Version{}); !errors.Is(err, ErrConflict) {
			t.Errorf("a key that is there: %v", err)
		}
		v, err := ns.PutIf(t.Context(), key, []byte("on a condition"), held.Version)
		c.must(err)
		if _, err := c.spaces[(i+1)%5].PutIf(t.Context(), key, []byte("x"), held.Version); !errors.Is(err, ErrConflict) {
			t.Errorf("a version that was overwritten: %v", err)
		}
		if _, err := ns.DeleteIf(t.Context(), key, v); err != nil {
			t.Error(err)
		}
		if _, err := c.spaces[(i+2)%5].Get(t.Context(), key); !errors.Is(err, ErrDeleted) {
			t.Errorf("a deleted key: %v", err)
		}
	}
	if _, err := c.spaces[0].Get(t.Context(), []byte("nothing")); !errors.Is(err, ErrNotFound) {
		t.Errorf("a key without a record: %v", err)
	}
	if _, err := c.spaces[0].Put(t.Context(), []byte("k"), nil, Ack(4)); !errors.Is(err, ErrInvalid) {
		t.Errorf("more hosts than there are: %v", err)
	}
}

// write writes a record at one host alone.
func (c *routedCluster) write(i int, key, value string) dbadapter.Version {
	c.t.Helper()
	sh, err := c.spaces[i].numbered(c.spaces[i].core.Home([]byte(key)))
	c.must(err)
	attempt, err := sh.set.Write(node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value)}})
	c.must(err)
	c.must(sh.commit(c.t.Context(), attempt))
	return attempt.Version(0)
}
