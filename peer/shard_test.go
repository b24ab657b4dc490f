package peer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// shardCluster is three nodes of one namespace of four shards. Each node lacks one of the
// last three, so that two hold each of these, and all three the first.
type shardCluster struct {
	t      *testing.T
	config [3]Config
	nodes  [3]*Node
	spaces [3]*Namespace
}

func newShardCluster(t *testing.T, config Config) *shardCluster {
	t.Helper()
	c := &shardCluster{t: t}
	for i, holds := range [][]placement.Shard{{0, 1, 2}, {0, 1, 3}, {0, 2, 3}} {
		config.holds, config.ListenAddrs, config.Dir = holds, []string{"/ip4/127.0.0.1/tcp/0"}, t.TempDir()
		c.config[i], c.nodes[i] = config, openForTest(t, config)
	}
	n := c.nodes[0]
	secret := n.core.NewSecret()
	s, err := n.core.FoundShards(secret, "notes", node.Policy{}, &placement.Rule{Kind: placement.Hash, Shards: 4, Replicas: 2})
	if err == nil {
		n.changing.Lock()
		c.spaces[0], err = n.addNamespace(t.Context(), secret, s)
		n.changing.Unlock()
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range c.nodes[1:] {
		c.spaces[i+1] = joinForTest(t, c.spaces[0], n)
	}
	return c
}

func (c *shardCluster) put(i int, number placement.Shard, key string) {
	c.t.Helper()
	d := node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: fmt.Append(nil, "by ", i)}}
	_, err := c.spaces[i].commitTo(c.t.Context(), "put", d.Record.Key, func() (*shard, error) { return c.spaces[i].numbered(number) },
		func(set *node.Set) (*node.Attempt, error) { return set.Write(d) })
	if err != nil {
		c.t.Fatal(err)
	}
}

// keys are those that a node holds, with the shards that they are in.
func (c *shardCluster) keys(i int) (keys []string) {
	c.t.Helper()
	for _, sh := range c.spaces[i].shards() {
		snap, err := sh.set.Store.Snapshot()
		if err != nil {
			c.t.Fatal(err)
		}
		for r, err := range snap.Scan(c.t.Context(), nil, nil) {
			if err != nil {
				c.t.Fatal(err)
			}
			keys = append(keys, fmt.Sprintf("%d/%s", sh.set.Shard(), r.Key))
		}
		snap.Close()
	}
	return keys
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
}

// each calls do with each node and each shard that it holds.
func (c *shardCluster) each(do func(i int, sh *shard)) {
	for i := range c.nodes {
		for _, sh := range c.spaces[i].shards() {
			do(i, sh)
		}
	}
}

// What is written to a shard is pushed to the nodes that hold it, and to no other.
func TestShardsArePushed(t *testing.T) {
	c := newShardCluster(t, Config{SyncInterval: time.Hour})
	var want [3][]string
	for number := range placement.Shard(4) {
		key := fmt.Sprint("of ", number)
		by := slices.IndexFunc(c.nodes[:], func(n *Node) bool { return slices.Contains(n.holds, number) })
		c.put(by, number, key)
		for i, n := range c.nodes {
			if slices.Contains(n.holds, number) {
				want[i] = append(want[i], fmt.Sprintf("%d/%s", number, key))
			}
		}
	}
	for i := range c.nodes {
		waitFor(t, fmt.Sprint("the pushes reach node ", i), func() bool { return slices.Equal(c.keys(i), want[i]) })
	}
}

// Each shard is synced between the nodes that hold it, by a caller and in the background;
// restarts keep the shards, and what syncs have proved of them.
func TestShardsAreSynced(t *testing.T) {
	c := newShardCluster(t, Config{})
	for number, by := range []int{1, 1, 2, 2} {
		c.put(by, placement.Shard(number), fmt.Sprint("of ", number))
	}
	report, err := c.spaces[0].Sync(t.Context(), c.nodes[1].ID(), SyncOptions{})
	if err != nil || !report.Verified || report.Applied != 2 || report.Differences() != 2 {
		t.Errorf("the first node syncs with the second: %+v, %v", report, err)
	}
	var heard int
	report, err = c.spaces[0].Sync(t.Context(), c.nodes[2].ID(), SyncOptions{Progress: func(r Report) { heard = max(heard, r.Applied+r.Sent) }})
	if err != nil || !report.Verified || report.Applied != 1 || report.Sent != 1 || heard != 2 {
		t.Errorf("the first node syncs with the third: %+v, %v; it was told of %d records", report, err, heard)
	}
	c.nodes[1].turn(node.Turn{Remote: node.ID(c.nodes[2].ID()), Sets: c.spaces[1].core.Sets()})
	for i, want := range [][]string{{"0/of 0", "1/of 1", "2/of 2"}, {"0/of 0", "1/of 1", "3/of 3"}, {"0/of 0", "2/of 2", "3/of 3"}} {
		if got := c.keys(i); !slices.Equal(got, want) {
			t.Errorf("node %d holds %q, want %q", i, got, want)
		}
		if info := c.spaces[i].Info(); info.Records != 3 {
			t.Errorf("node %d tells of %d records", i, info.Records)
		}
		if v, err := c.spaces[i].Verify(t.Context()); err != nil || v.Records != 3 {
			t.Errorf("node %d verifies %d records: %v", i, v.Records, err)
		}
	}
	c.each(func(i int, sh *shard) {
		if last, _ := sh.verified.last(); last.At.IsZero() {
			t.Errorf("no sync has proved shard %d of node %d", sh.set.Shard(), i)
		}
	})
	var before [3][]string
	for i := range c.nodes {
		before[i] = c.keys(i)
		c.reopen(i)
		if got := c.keys(i); !slices.Equal(got, before[i]) {
			t.Errorf("node %d held %q before its restart, and holds %q", i, before[i], got)
		}
	}
	c.each(func(i int, sh *shard) {
		if last, _ := sh.verified.last(); last.At.IsZero() {
			t.Errorf("after a restart node %d does not know that shard %d was proved", i, sh.set.Shard())
		}
	})
	dir := namespaceDir(c.config[0].Dir, c.spaces[0].id)
	for name, want := range map[string]bool{"verified-0.cbor": true, "verified-2.cbor": true, "verified-3.cbor": false, verifiedFile: false} {
		if _, err := os.Stat(filepath.Join(dir, name)); want != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a node holds of several shards it lists as one: records by key, and what it has kept
// with numbers that tell of which shard it is.
func TestShardsAreListedAsOne(t *testing.T) {
	c := newShardCluster(t, Config{})
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
	if _, err := c.spaces[0].Sync(t.Context(), c.nodes[1].ID(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	var kept []dbadapter.Kept
	for k, err := range c.spaces[0].Conflicts(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, k)
	}
	if len(kept) != 2 || kept[0].Seq>>keptBits != 0 || kept[1].Seq>>keptBits != 1 || c.spaces[0].Info().Conflicts != 2 {
		t.Fatalf("kept: %+v", kept)
	}
	before, err := c.spaces[0].numbered(1)
	if err != nil {
		t.Fatal(err)
	}
	latest := before.set.Store.Latest()
	if v, err := c.spaces[0].RestoreKept(t.Context(), kept[1]); err != nil || v.Clock <= latest || before.set.Store.Latest() != v.Clock {
		t.Errorf("restored as %s: %v", v, err)
	}
	if err := c.spaces[0].ForgetKept(t.Context(), kept[0].Seq); err != nil {
		t.Fatal(err)
	}
	for k := range c.spaces[0].Conflicts(t.Context()) {
		if k.Seq == kept[0].Seq || k.Seq == kept[1].Seq {
			t.Errorf("entry %d is still kept", k.Seq)
		}
	}
	if got := c.spaces[0].Rejected(); len(got) != 0 {
		t.Errorf("rejected: %+v", got)
	}
}

// A node that is not made for shards keeps no namespace that is cut into them.
func TestShardsAreRefused(t *testing.T) {
	c := newShardCluster(t, Config{})
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
	c.config[0].holds = nil
	if _, err := Open(t.Context(), c.config[0]); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("it opens the folder: %v", err)
	}
}
