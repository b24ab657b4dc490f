package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
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
	if len(hosts) != c.replicas {
		c.t.Fatalf("%q has the hosts %v", key, hosts)
	}
	return hosts, others
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

// A host that has paused the namespace answers all the same, and itself reads and writes; one that
// has paused a peer does not answer that one. A reader writes nothing, and one that was removed is
// answered nothing.
func TestRoutedRights(t *testing.T) {
	c := newLocatedCluster(t, 4)
	key := "k"
	hosts, others := c.hosts(key)
	paused, reader := c.spaces[hosts[1]], c.spaces[others[1]]
	c.must(paused.Pause(t.Context()))
	v, err := c.put(others[0], key, "v", All)
	if err != nil || c.held(hosts[1], key).Version != v {
		t.Errorf("written at a host that has paused the namespace: %v", err)
	}
	for _, at := range []int{others[0], hosts[1]} {
		if r, err := c.spaces[at].Get(t.Context(), []byte(key), Read(All)); err != nil || r.Version != v {
			t.Errorf("read at %d: %v, %v", at, r.Version, err)
		}
	}
	if _, err := c.spaces[others[0]].Sync(t.Context(), c.nodes[hosts[1]].ID(), SyncOptions{}); !errors.Is(err, ErrPaused) {
		t.Errorf("a sync with it: %v", err)
	}
	c.must(c.nodes[hosts[1]].PausePeer(t.Context(), c.nodes[others[0]].ID()))
	l, err := c.spaces[others[0]].Locate(t.Context(), []byte(key), Read(All))
	i := slices.IndexFunc(l.Asked, func(at status.LocatedAt) bool { return at.Peer == c.nodes[hosts[1]].ID() })
	if !errors.Is(err, ErrTooFew) || i < 0 || !errors.Is(l.Asked[i].Err, ErrPaused) {
		t.Errorf("a host that has paused this node: %+v, %v", l.Asked, err)
	}
	id := reader.node.ID()
	c.must(c.spaces[0].SetRole(t.Context(), id, RoleRead))
	_, err = reader.Sync(t.Context(), c.nodes[0].ID(), SyncOptions{})
	c.must(err)
	if _, err := reader.Put(t.Context(), []byte(key), []byte("x")); !errors.Is(err, ErrDenied) {
		t.Errorf("a reader writes: %v", err)
	}
	if r, err := reader.Get(t.Context(), []byte(key)); err != nil || r.Version != v {
		t.Errorf("a reader reads: %v, %v", r.Version, err)
	}
	c.must(c.spaces[0].ForceRemove(t.Context(), id))
	for _, host := range hosts {
		if c.spaces[host] != c.spaces[0] {
			_, err := c.spaces[0].Sync(t.Context(), c.nodes[host].ID(), SyncOptions{})
			if err != nil && !errors.Is(err, ErrPaused) {
				t.Error(err)
			}
		}
	}
	if r, err := reader.Get(t.Context(), []byte(key)); err == nil {
		t.Errorf("one that was removed reads %v", r.Version)
	}
}

// scanned are the keys and values that a scan yields, and its error.
func scanned(ctx context.Context, ns *Namespace, prefix string, options ...ScanOption) (got []string, failed error) {
	for r, err := range ns.Scan(ctx, []byte(prefix), options...) {
		if err != nil {
			return got, err
		}
		got = append(got, fmt.Sprintf("%s=%.20s", r.Key, r.Value))
	}
	return got, nil
}

// filled writes records to all shards, some of which fill a page alone, and gives what a
// scan is to yield.
func (c *routedCluster) filled() (want []string) {
	large := strings.Repeat("v", wire.BatchBytes/2)
	for i := range 60 {
		key, value := fmt.Sprintf("key %02d", i), fmt.Sprint("value ", i)
		if i%10 == 0 {
			value = large
		}
		_, err := c.put(i%len(c.nodes), key, value, All)
		c.must(err)
		want = append(want, fmt.Sprintf("%s=%.20s", key, value))
	}
	_, err := c.spaces[0].Delete(c.t.Context(), []byte("key 07"), Ack(All))
	c.must(err)
	return slices.Delete(want, 7, 8)
}

// A scan at any node yields all records of all shards, by key, and goes on behind any key; also
// where there is no room for its pages.
func TestScanOverShards(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	want := c.filled()
	room := func(n int64) ScanOption { return func(s *scan) { s.Room = n } }
	for i, ns := range c.spaces {
		for name, test := range map[string]struct {
			prefix  string
			options []ScanOption
			want    []string
		}{
			"all":                {"key", nil, want},
			"behind a key":       {"key", []ScanOption{After([]byte("key 39"))}, want[39:]},
			"of a prefix":        {"key 1", nil, want[9:19]},
			"without room":       {"key", []ScanOption{room(0)}, want},
			"with room for one":  {"key", []ScanOption{room(wire.BatchBytes)}, want},
			"of what is nowhere": {"none", nil, nil},
		} {
			if got, err := scanned(t.Context(), ns, test.prefix, test.options...); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("node %d, %s: %q, %v", i, name, got, err)
			}
		}
		if got, err := scanned(t.Context(), ns, "key", WithTombstones()); err != nil || len(got) != len(want)+1 {
			t.Errorf("node %d, with tombstones: %d, %v", i, len(got), err)
		}
	}
	for range c.spaces[0].Scan(t.Context(), nil) {
		break // what fetches pages ends with the loop: the nodes close
	}
}

// A host that goes away in the middle of a scan is replaced by another one. Where there is
// none, the scan says so, and goes on behind its last key at another node, or later.
func TestScanGoesOnWithoutAHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	want := c.filled()
	asker := c.spaces[0]
	away := false
	var got []string
	for r, err := range asker.Scan(t.Context(), []byte("key")) {
		c.must(err)
		got = append(got, fmt.Sprintf("%s=%.20s", r.Key, r.Value))
		if !away {
			away = true
			c.must(c.nodes[1].Close(context.Background()))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("a host has gone: %q", got)
	}
	// Now all other hosts go, too: what the node does not hold itself is missing, and that
	// is said.
	for i := 2; i < len(c.nodes); i++ {
		c.must(c.nodes[i].Close(context.Background()))
	}
	got, err := scanned(t.Context(), asker, "key")
	if !errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), "shard") {
		t.Errorf("no host is there: %d records, %v", len(got), err)
	}
	if len(got) > 0 && !slices.Equal(got, want[:len(got)]) {
		t.Errorf("a gap before the error: %q", got)
	}
}
