package peer

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/shards"
)

// shardCluster is nodes of one namespace of eight shards, of which two nodes are to hold
// each, unless replicas says otherwise. The test is their background, and moves their clock.
type shardCluster struct {
	kind     placement.Kind
	locator  bool
	replicas int
	t        testing.TB
	now      *atomic.Int64
	base     Config
	config   []Config
	nodes    []*Node
	spaces   []*Namespace
	secret   dbadapter.Secret
	want     [8][]string // what was written to each shard
}

func newShardCluster(t testing.TB, size int, config Config) *shardCluster {
	t.Helper()
	c := &shardCluster{t: t, now: &atomic.Int64{}, replicas: 2, kind: placement.Hash}
	start := time.Now()
	config.Clock = func() time.Time { return start.Add(time.Duration(c.now.Load())) }
	config.ListenAddrs = []string{"/ip4/127.0.0.1/tcp/0"}
	c.base = config
	for range size {
		c.join()
	}
	return c
}

func (c *shardCluster) must(err error) {
	c.t.Helper()
	must(c.t, err)
}

// join adds a node, which makes the namespace if it is the first one.
func (c *shardCluster) join() {
	c.t.Helper()
	config := c.base
	config.Dir = c.t.TempDir()
	// Layouts are drawn by the nodes' ids, and some leave a node without shards: these do not.
	key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-2), 2, byte(len(c.nodes)))))
	must(c.t, err)
	config.Identity = key
	n := openForTest(c.t, config)
	c.config, c.nodes = append(c.config, config), append(c.nodes, n)
	if len(c.spaces) > 0 {
		c.spaces = append(c.spaces, joinForTest(c.t, c.spaces[0], n, RoleWrite))
		return
	}
	c.secret = n.core.NewSecret()
	rule := &placement.Rule{Kind: c.kind, Shards: 8, Replicas: c.replicas, Locator: c.locator || c.kind == placement.Writer}
	if c.kind == placement.Prefix {
		rule.Prefixes = []placement.PrefixShard{{Prefix: []byte("k"), Shard: 5}, {Prefix: []byte("key 1"), Shard: 2}}
	}
	s, err := n.core.FoundShards(c.secret, "notes", node.Policy{}, rule)
	var ns *Namespace
	if err == nil {
		n.changing.Lock()
		ns, err = n.addNamespace(c.t.Context(), c.secret, s, false)
		n.changing.Unlock()
	}
	must(c.t, err)
	c.spaces = append(c.spaces, ns)
	c.round()
	if got := len(c.numbers(0)); got != 8 {
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
		n.core.Schedule.Round(n.ctx, oneByOne{&rounds{node: n}}, n.partners())
	}
}

// oneByOne holds the syncs of a schedule one after the other.
type oneByOne struct{ *rounds }

func (oneByOne) Go(ctx context.Context, f func(ctx context.Context)) { f(ctx) }

// roundsUntil lets rounds pass until something is so.
func (c *shardCluster) roundsUntil(what string, so func() bool) {
	c.t.Helper()
	for range 60 {
		if so() {
			return
		}
		c.round()
	}
	c.t.Fatalf("in 60 rounds not: %s", what)
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
			if len(of) != min(c.replicas, len(hosts)) || slices.ContainsFunc(of, func(id node.ID) bool { return !slices.Contains(ids, id) }) {
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

// keyIn is a key of a shard that begins so.
func (c *shardCluster) keyIn(number placement.Shard, begins string) string {
	key := begins
	for k := 0; c.spaces[0].core.Home([]byte(key)) != number; k++ {
		key = fmt.Sprint(begins, ", ", k)
	}
	return key
}

// put writes a record of a shard at a node that holds it, under keyIn.
func (c *shardCluster) put(i int, number placement.Shard, begins string) {
	c.t.Helper()
	key := c.keyIn(number, begins)
	d := node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: fmt.Append(nil, "by ", i)}}
	sh, err := c.spaces[i].numbered(number)
	c.must(err)
	attempt, err := sh.set.Write(d)
	c.must(err)
	c.must(sh.commit(c.t.Context(), attempt))
	c.want[number] = append(c.want[number], key)
	slices.Sort(c.want[number])
	c.want[number] = slices.Compact(c.want[number])
}

// keys are those that a node holds of a shard.
func (c *shardCluster) keys(i int, number placement.Shard) (keys []string) {
	c.t.Helper()
	sh, err := c.spaces[i].numbered(number)
	must(c.t, err)
	for r, err := range shards.ScanSet(c.t.Context(), sh.set, &scan{}) {
		must(c.t, err)
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
	must(c.t, c.nodes[i].Close(c.t.Context()))
	c.nodes[i] = openForTest(c.t, c.config[i])
	var err error
	c.spaces[i], err = c.nodes[i].Namespace("notes")
	must(c.t, err)
	for j, other := range c.nodes { // the ports are others
		if j == i {
			continue
		}
		must(c.t, errOf(c.nodes[i].Connect(c.t.Context(), other.Addrs()[0])))
	}
}
