package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
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
	remote := c.spaces[0].core.Remote([]byte(key))
	named, err := remote.Hosts()
	c.must(err)
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
	remote := c.spaces[i].core.Remote([]byte(key))
	sh, err := c.spaces[i].numbered(remote.Shard())
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	c.must(err)
	r, err := sh.set.Held([]byte(key))
	c.must(err)
	return r
}

func (c *routedCluster) put(i int, key, value string, ack route.Ack) (offered, error) {
	return c.spaces[i].offer(c.t.Context(), node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value)}}, false, ack)
}

// Any node reads and writes any key, whoever hosts it: what is acknowledged by all hosts is
// what each node reads, overwritten by any node, without a conflict.
func TestRoutedReadsAndWrites(t *testing.T) {
	c := newRoutedCluster(t, 5)
	want := map[string]string{}
	for round := range 3 {
		for i := range 20 {
			key, by := fmt.Sprint("key ", i), (i+round)%len(c.nodes)
			want[key] = fmt.Sprintf("%d by %d", round, by)
			if done, err := c.put(by, key, want[key], route.All); err != nil || done.Held != 2 {
				t.Fatalf("node %d writes %q: %+v, %v", by, key, done, err)
			}
		}
	}
	for key, value := range want {
		hosts, others := c.hosts(key)
		for i, ns := range c.spaces {
			got, err := ns.Get(t.Context(), []byte(key))
			if err != nil || string(got.Value) != value {
				t.Errorf("node %d reads %q of %q: %v", i, got.Value, key, err)
			}
		}
		for _, i := range hosts {
			if r := c.held(i, key); r == nil || string(r.Value) != value {
				t.Errorf("the host %d holds %+v", i, r)
			}
		}
		for _, i := range others {
			if r := c.held(i, key); r != nil {
				t.Errorf("node %d holds %q, and is no host", i, key)
			}
		}
	}
	for i, ns := range c.spaces {
		for _, sh := range ns.shards() {
			if n := sh.set.Store.KeptCount(dbadapter.KeptConflict); n != 0 {
				t.Errorf("node %d keeps %d conflicts of shard %d", i, n, sh.set.Shard())
			}
		}
	}
	_, others := c.hosts("none")
	ns := c.spaces[others[0]]
	if _, err := ns.Get(t.Context(), []byte("none")); !errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsure) {
		t.Errorf("a key that is not there: %v", err)
	}
	if _, err := ns.Delete(t.Context(), []byte("none")); !errors.Is(err, ErrNotFound) {
		t.Errorf("to delete what is not there: %v", err)
	}
	// All hosts are to acknowledge: otherwise the one that a read asks may not have it yet.
	large := make([]byte, dbadapter.MaxValue)
	onFree := node.Draft{Record: dbadapter.Record{Key: []byte("none"), Value: large}, If: &dbadapter.Version{}}
	done, err := ns.offer(t.Context(), onFree, false, route.All)
	c.must(err)
	v := done.Version
	if got, err := ns.Get(t.Context(), []byte("none")); err != nil || len(got.Value) != len(large) || got.Version != v {
		t.Errorf("the greatest value: %d bytes, %v", len(got.Value), err)
	}
	if _, err := ns.PutIf(t.Context(), []byte("none"), nil, dbadapter.Version{}); !errors.Is(err, ErrConflict) {
		t.Errorf("a write on a condition that does not hold: %v", err)
	}
	if _, err := ns.offer(t.Context(), node.Draft{Record: dbadapter.Record{Key: []byte("none"), Deleted: true}}, true, route.All); err != nil {
		t.Error(err)
	}
	if _, err := ns.Get(t.Context(), []byte("none")); !errors.Is(err, ErrDeleted) {
		t.Errorf("what is deleted: %v", err)
	}
	for _, all := range []bool{false, true} {
		at, err := ns.Locate(t.Context(), []byte("key 0"), all)
		if err != nil || !at.Sure || at.Record == nil || string(at.Record.Value) != want["key 0"] || len(at.Hosts) != 2 || at.Here && len(at.Asked) > 0 && !all {
			t.Errorf("located, of all %t: %+v, %v", all, at, err)
		}
		for _, one := range at.Asked {
			if all && one.Host && (!one.Answered || !one.Settled || one.Version != at.Record.Version) {
				t.Errorf("of all: %+v", one)
			}
		}
	}
	if v, err := ns.Put(t.Context(), []byte("acks"), []byte("v"), Acks(AckAll)); err != nil || c.held(c.first("acks"), "acks").Version != v {
		t.Errorf("acknowledged by all: %v", err)
	}
	if _, err := ns.Delete(t.Context(), []byte("acks"), Acks(AckMajority)); err != nil {
		t.Errorf("deleted, by a majority: %v", err)
	}
	if _, err := ns.Put(t.Context(), []byte("acks"), nil, Acks(3)); !errors.Is(err, ErrInvalid) {
		t.Errorf("acknowledged by three of two: %v", err)
	}
	one := newRoutedCluster(t, 1)
	if _, err := one.spaces[0].Put(t.Context(), []byte("acks"), nil, Acks(2)); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrInvalid) {
		t.Errorf("acknowledged by two, of which the layout names one yet: %v", err)
	}
	if _, err := c.put(others[0], "none", "", 3); !errors.Is(err, ErrInvalid) && !errors.Is(err, route.ErrAck) {
		t.Errorf("three of two hosts: %v", err)
	}
}

// A host that is away costs no answer while the other one lives, and its word is missing
// where all are asked for; where no host can be reached, that is said.
func TestRoutedWithoutHosts(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	_, err := c.put(0, "key", "value", route.All)
	c.must(err)
	hosts, others := c.hosts("key")
	asker := c.spaces[others[0]]
	c.must(c.nodes[hosts[0]].Close(context.Background()))
	for range 3 {
		if got, err := asker.Get(t.Context(), []byte("key")); err != nil || string(got.Value) != "value" {
			t.Errorf("one host is away: %q, %v", got.Value, err)
		}
	}
	if _, err := asker.Put(t.Context(), []byte("key"), []byte("second")); err != nil {
		t.Errorf("one host is away: %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	done, err := asker.offer(soon, node.Draft{Record: dbadapter.Record{Key: []byte("key"), Value: []byte("third")}}, false, route.All)
	if !errors.Is(err, ErrUnconfirmed) || done.Held != 1 || done.Need != 2 {
		t.Errorf("both are asked for: %+v, %v", done, err)
	}
	if r := c.held(hosts[1], "key"); r == nil || string(r.Value) != "third" {
		t.Errorf("what is not confirmed stays written: %+v", r)
	}
	c.must(c.nodes[hosts[1]].Close(context.Background()))
	if _, err := asker.Get(t.Context(), []byte("key")); !errors.Is(err, ErrUnsure) || !errors.Is(err, ErrUnreachable) {
		t.Errorf("no host is there: %v", err)
	}
	soon, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := asker.Put(soon, []byte("key"), nil); !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrUnconfirmed) {
		t.Errorf("no host is there: %v", err)
	}
}

// A host that hides what it holds, one that gives what it made up, and one that says
// nothing make a look-up slower, and not wrong.
func TestRoutedWithALyingHost(t *testing.T) {
	c := newRoutedCluster(t, 4)
	_, err := c.put(0, "key", "value", route.All)
	c.must(err)
	hosts, others := c.hosts("key")
	asker, liar := c.spaces[others[0]], c.nodes[hosts[0]]
	counted := func(what string) int { return c.counted(others[0], "syncd_routed_requests_total", what) }
	named := map[string]string{"hides": "contradicted", "forges": "false"}
	for name, lie := range map[string]wire.Answering{
		"hides":   &wire.RecordAnswer{Settled: true, Current: true},
		"forges":  &wire.RecordAnswer{Settled: true, Current: true, Record: &dbadapter.Record{Key: []byte("key"), Value: []byte("forged"), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(liar.now()), Writer: 5}}},
		"silent":  nil,
		"no host": &wire.RecordAnswer{Elsewhere: &wire.Elsewhere{Epoch: 1 << 40}},
	} {
		c.lies(liar, asker, func(*wire.Ask) wire.Answering { return lie })
		asker.node.routing.close() // streams of before the lie
		asker.node.routing.times = route.Times{}
		var before int
		if named[name] != "" {
			before = counted(named[name])
		}
		reads := counted("read")
		for range 10 {
			if got, err := asker.Get(t.Context(), []byte("key")); err != nil || string(got.Value) != "value" {
				t.Fatalf("%s: %q, %v", name, got.Value, err)
			}
		}
		if what := named[name]; what != "" && counted(what) == before {
			t.Errorf("%s: nothing is counted as %s", name, what)
		}
		if n := counted("read") - reads; n > 20 {
			t.Errorf("%s: %v requests for 10 look-ups", name, n)
		}
	}
}

// While a host has paused the namespace its shards are read and written, here and there, and
// reads of them are not sure; a host that has paused a peer does not answer it.
func TestRoutedWhilePaused(t *testing.T) {
	c := newLocatedCluster(t, 3, placement.Hash) // by ids that are the same in each run: of others one node may host each shard
	hosts, others := c.hosts("k")
	paused, away := c.spaces[hosts[0]], c.spaces[others[0]]
	elsewhere := "" // a key of which the paused node is no host
	for i := range 1000 {
		if _, not := c.hosts(fmt.Sprint(i)); not[0] == hosts[0] {
			elsewhere = fmt.Sprint(i)
			break
		}
	}
	if elsewhere == "" {
		t.Fatal("one node hosts each shard: choose other idsOfWriters")
	}
	c.must(paused.Pause(t.Context()))
	v, err := away.Put(t.Context(), []byte("k"), []byte("v"), Acks(AckAll))
	if err != nil || c.held(hosts[0], "k").Version != v {
		t.Errorf("written at both hosts: %v", err)
	}
	if _, err := paused.Put(t.Context(), []byte(elsewhere), []byte("v"), Acks(AckAll)); err != nil {
		t.Errorf("written by it at others: %v", err)
	}
	c.now.Add(int64(time.Minute))
	if r, err := away.Get(t.Context(), []byte("k")); r.Version != v || err != nil && !errors.Is(err, ErrUnsure) {
		t.Errorf("read elsewhere: %v, %v", r.Version, err)
	}
	if r, err := paused.Get(t.Context(), []byte(elsewhere)); string(r.Value) != "v" || err != nil && !errors.Is(err, ErrUnsure) {
		t.Errorf("read by it at others: %q, %v", r.Value, err)
	}
	if _, err := away.Sync(t.Context(), c.nodes[hosts[0]].ID(), SyncOptions{}); !errors.Is(err, ErrPaused) {
		t.Errorf("a sync with it: %v", err)
	}
	c.must(c.nodes[hosts[1]].PausePeer(t.Context(), c.nodes[others[0]].ID()))
	l, err := away.Locate(t.Context(), []byte("k"), true)
	i := slices.IndexFunc(l.Asked, func(at LocatedAt) bool { return at.Peer == c.nodes[hosts[1]].ID() })
	if i < 0 || !errors.Is(l.Asked[i].Err, ErrPaused) {
		t.Errorf("a host that has paused this node: %+v, %v", l.Asked, err)
	}
}
