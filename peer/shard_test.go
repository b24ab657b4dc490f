package peer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// shardCluster is nodes of one namespace of eight shards, of which two nodes are to hold
// each. The test is their background, and moves their clock.
type shardCluster struct {
	t      *testing.T
	now    *atomic.Int64
	base   Config
	config []Config
	nodes  []*Node
	spaces []*Namespace
	secret dbadapter.Secret
	want   [8][]string // what was written to each shard
}

func newShardCluster(t *testing.T, size int, config Config) *shardCluster {
	t.Helper()
	c := &shardCluster{t: t, now: &atomic.Int64{}}
	start := time.Now()
	config.Clock = func() time.Time { return start.Add(time.Duration(c.now.Load())) }
	config.sharded, config.ListenAddrs = true, []string{"/ip4/127.0.0.1/tcp/0"}
	c.base = config
	for range size {
		c.join()
	}
	return c
}

// join adds a node, which makes the namespace if it is the first one.
func (c *shardCluster) join() {
	c.t.Helper()
	config := c.base
	config.Dir = c.t.TempDir()
	n := openForTest(c.t, config)
	c.config, c.nodes = append(c.config, config), append(c.nodes, n)
	if len(c.spaces) > 0 {
		c.spaces = append(c.spaces, joinForTest(c.t, c.spaces[0], n))
		return
	}
	c.secret = n.core.NewSecret()
	s, err := n.core.FoundShards(c.secret, "notes", node.Policy{}, &placement.Rule{Kind: placement.Hash, Shards: 8, Replicas: 2})
	var ns *Namespace
	if err == nil {
		n.changing.Lock()
		ns, err = n.addNamespace(c.t.Context(), c.secret, s)
		n.changing.Unlock()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.spaces = append(c.spaces, ns)
	c.round()
	if got := len(ns.shards()); got != 8 {
		c.t.Fatalf("the first node holds %d shards", got)
	}
}

// round is what each node does in an interval, one after the other.
func (c *shardCluster) round() {
	c.t.Helper()
	c.now.Add(int64(5 * time.Second))
	for i, n := range c.nodes {
		c.spaces[i].tend()
		n.core.Schedule.Wake()
		n.core.Schedule.Begin(func(id node.ID) bool { return n.known(ID(id)) })
		for t, ok := n.core.Schedule.Next(); ok; t, ok = n.core.Schedule.Next() {
			n.turn(t)
			n.core.Schedule.Done(t)
		}
	}
}

// settle lets rounds pass until each shard is with its hosts, these nodes, and no other.
func (c *shardCluster) settle(hosts ...int) {
	c.t.Helper()
	for range 60 {
		if c.settled(hosts) {
			return
		}
		c.round()
	}
	for i := range c.spaces {
		layout, stated, err := c.spaces[i].core.Layout()
		c.t.Logf("node %d: %v by epoch %d, %v: %v", i, c.numbers(i), stated.Epoch, err, layout)
	}
	c.t.Fatal("the shards do not come to their hosts")
}

func (c *shardCluster) settled(hosts []int) bool {
	var ids []node.ID
	for _, i := range hosts {
		ids = append(ids, node.ID(c.nodes[i].ID()))
	}
	for at, i := range hosts {
		layout, _, err := c.spaces[i].core.Layout()
		if err != nil {
			return false
		}
		var want []placement.Shard
		for number := range placement.Shard(8) {
			of := layout.Hosts(number)
			if slices.Contains(of, ids[at]) {
				want = append(want, number)
			}
			if len(of) != min(2, len(hosts)) || slices.ContainsFunc(of, func(id node.ID) bool { return !slices.Contains(ids, id) }) {
				return false
			}
		}
		if !slices.Equal(c.numbers(i), want) {
			return false
		}
	}
	return true
}

// numbers are the shards that a node holds.
func (c *shardCluster) numbers(i int) (all []placement.Shard) {
	for _, sh := range c.spaces[i].shards() {
		all = append(all, sh.set.Shard())
	}
	return all
}

// holders are the nodes that hold a shard.
func (c *shardCluster) holders(number placement.Shard) (all []int) {
	for i := range c.spaces {
		if slices.Contains(c.numbers(i), number) {
			all = append(all, i)
		}
	}
	return all
}

// put writes a record of a shard at a node that holds it.
func (c *shardCluster) put(i int, number placement.Shard, key string) {
	c.t.Helper()
	d := node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: fmt.Append(nil, "by ", i)}}
	_, err := c.spaces[i].commitTo(c.t.Context(), "put", d.Record.Key, func() (*shard, error) { return c.spaces[i].numbered(number) },
		func(set *node.Set) (*node.Attempt, error) { return set.Write(d) })
	if err != nil {
		c.t.Fatal(err)
	}
	c.want[number] = append(c.want[number], key)
	slices.Sort(c.want[number])
	c.want[number] = slices.Compact(c.want[number])
}

// keys are those that a node holds of a shard.
func (c *shardCluster) keys(i int, number placement.Shard) (keys []string) {
	c.t.Helper()
	sh, err := c.spaces[i].numbered(number)
	if err != nil {
		c.t.Fatal(err)
	}
	for r, err := range sh.scan(c.t.Context(), nil, &scan{}) {
		if err != nil {
			c.t.Fatal(err)
		}
		keys = append(keys, string(r.Key))
	}
	return keys
}

// whole checks that each shard is as it was written at each node that holds it.
func (c *shardCluster) whole() {
	c.t.Helper()
	for number := range placement.Shard(8) {
		for _, i := range c.holders(number) {
			if got := c.keys(i, number); !slices.Equal(got, c.want[number]) {
				c.t.Errorf("node %d holds %q of shard %d, want %q", i, got, number, c.want[number])
			}
		}
	}
}

// reopen closes a node, and opens it again.
func (c *shardCluster) reopen(i int) {
	c.t.Helper()
	if err := c.nodes[i].Close(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.nodes[i] = openForTest(c.t, c.config[i])
	var err error
	if c.spaces[i], err = c.nodes[i].Namespace("notes"); err != nil {
		c.t.Fatal(err)
	}
	for j, other := range c.nodes { // the ports are others
		if j == i {
			continue
		}
		if _, err := c.nodes[i].Connect(c.t.Context(), other.Addrs()[0]); err != nil {
			c.t.Fatal(err)
		}
	}
}

// Shards go to the nodes that join, and leave those that handed them over; and come back
// when a member is removed. No record is lost, and restarts keep what is held, with what
// syncs have proved of it.
func TestShardsComeAndGo(t *testing.T) {
	c := newShardCluster(t, 1, Config{})
	for number := range placement.Shard(8) {
		c.put(0, number, fmt.Sprint("first of ", number))
	}
	c.join()
	c.join()
	c.settle(0, 1, 2)
	c.whole()
	for number := range placement.Shard(8) {
		of := c.holders(number)
		if len(of) != 2 {
			t.Fatalf("%v hold shard %d", of, number)
		}
		c.put(of[1], number, fmt.Sprint("second of ", number))
	}
	c.round()
	c.round()
	c.whole()
	for i, ns := range c.spaces {
		records, held := int64(0), c.numbers(i)
		for _, number := range held {
			records += int64(len(c.want[number]))
		}
		if got := ns.Info().Records; got != records {
			t.Errorf("node %d tells of %d records, want %d", i, got, records)
		}
		if v, err := ns.Verify(t.Context()); err != nil || v.Records != records {
			t.Errorf("node %d verifies %d records: %v", i, v.Records, err)
		}
		c.reopen(i)
		if got := c.numbers(i); !slices.Equal(got, held) {
			t.Errorf("node %d held %v before its restart, and holds %v", i, held, got)
		}
		for _, sh := range c.spaces[i].shards() {
			if last, _ := sh.verified.last(); last.At.IsZero() {
				t.Errorf("after a restart node %d does not know that shard %d was proved", i, sh.set.Shard())
			}
		}
		for number := range placement.Shard(8) {
			_, err := os.Stat(filepath.Join(namespaceDir(c.config[i].Dir, ns.id), fmt.Sprintf(verifiedOfShard, number)))
			if kept := err == nil; kept != slices.Contains(held, number) {
				t.Errorf("node %d, which holds %v, has proofs of shard %d: %t", i, held, number, kept)
			}
		}
	}
	c.whole()
	if err := c.spaces[0].Remove(t.Context(), c.nodes[2].ID()); err != nil {
		t.Fatal(err)
	}
	c.settle(0, 1)
	if got := [][]placement.Shard{c.numbers(0), c.numbers(1)}; len(got[0]) != 8 || len(got[1]) != 8 {
		t.Errorf("two nodes are left, which hold %v", got)
	}
	c.round()
	c.whole()
}

// What is written to a shard is pushed to the node that holds it, too.
func TestShardsArePushed(t *testing.T) {
	c := newShardCluster(t, 3, Config{SyncInterval: time.Hour})
	c.settle(0, 1, 2)
	for number := range placement.Shard(8) {
		of := c.holders(number)
		c.put(of[0], number, fmt.Sprint("of ", number))
		waitFor(t, fmt.Sprintf("shard %d is pushed", number), func() bool { return slices.Equal(c.keys(of[1], number), c.want[number]) })
	}
	c.whole()
}

// What a node holds of several shards it lists as one: records by key, and what it has kept
// with numbers that tell of which shard it is. A sync is of all that the two hold.
func TestShardsAreOne(t *testing.T) {
	c := newShardCluster(t, 2, Config{})
	c.settle(0, 1)
	for i, key := range []string{"d", "a", "f", "c", "b", "e"} {
		c.put(0, placement.Shard(i%3), key)
	}
	var keys []string
	for r, err := range c.spaces[0].Scan(t.Context(), nil, After([]byte("a"))) {
		if err != nil {
			t.Fatal(err)
		}
		if keys = append(keys, string(r.Key)); len(keys) == 4 {
			break
		}
	}
	if !slices.Equal(keys, []string{"b", "c", "d", "e"}) {
		t.Errorf("it yields %q", keys)
	}
	for number := range placement.Shard(2) { // written on both sides before a sync
		c.put(0, number, "conflict")
		c.put(1, number, "conflict")
	}
	heard := 0
	report, err := c.spaces[0].Sync(t.Context(), c.nodes[1].ID(), SyncOptions{Progress: func(r Report) { heard = max(heard, r.Applied+r.Sent) }})
	if err != nil || !report.Verified || report.Differences() != 8 || report.Applied+report.Sent != heard {
		t.Errorf("%+v, %v; it was told of %d records", report, err, heard)
	}
	at := c.spaces[0]
	if at.Info().Conflicts == 0 {
		at = c.spaces[1]
	}
	var kept []dbadapter.Kept
	for k, err := range at.Conflicts(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, k)
	}
	if len(kept) != 2 || kept[0].Seq>>keptBits != 0 || kept[1].Seq>>keptBits != 1 || at.Info().Conflicts != 2 {
		t.Fatalf("kept: %+v", kept)
	}
	second, err := at.numbered(1)
	if err != nil {
		t.Fatal(err)
	}
	latest := second.set.Store.Latest()
	if v, err := at.RestoreKept(t.Context(), kept[1]); err != nil || v.Clock <= latest || second.set.Store.Latest() != v.Clock {
		t.Errorf("restored as %s: %v", v, err)
	}
	if err := at.ForgetKept(t.Context(), kept[0].Seq); err != nil {
		t.Fatal(err)
	}
	for k := range at.Conflicts(t.Context()) {
		if k.Seq == kept[0].Seq || k.Seq == kept[1].Seq {
			t.Errorf("entry %d is still kept", k.Seq)
		}
	}
}

// A node that is not made for shards keeps no namespace that is cut into them.
func TestShardsAreRefused(t *testing.T) {
	c := newShardCluster(t, 1, Config{})
	ticket, err := c.spaces[0].Invite(t.Context(), InviteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other := openForTest(t, Config{Dir: t.TempDir(), ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}})
	if _, err := other.Join(t.Context(), ticket); !errors.Is(err, dbadapter.ErrFormat) || len(other.Namespaces()) != 0 {
		t.Errorf("it joins: %v", err)
	}
	if err := c.nodes[0].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.config[0].sharded = false
	if _, err := Open(t.Context(), c.config[0]); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("it opens the folder: %v", err)
	}
}
