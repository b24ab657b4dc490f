package peer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// A node that has handed a shard over holds it on for the conflicts that it lists in it. What
// is restored of them is written to the shard's hosts, and with the last one the shard goes.
func TestConflictsHoldShard(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 2)
	const keys = 64
	for n := range keys { // written on both sides before a sync; each side loses every other one
		key := fmt.Sprint("key ", n)
		for i := range 2 {
			c.now.Add(int64(time.Millisecond))
			c.shardCluster.put((n+i)%2, c.spaces[0].core.Home([]byte(key)), key)
		}
	}
	c.round()
	for range 3 {
		c.join()
	}
	lists := func(i int) (all []dbadapter.Kept) {
		for k, err := range c.spaces[i].Conflicts(t.Context()) {
			c.must(err)
			all = append(all, k)
		}
		return all
	}
	listed := len(lists(0)) + len(lists(1))
	at := -1
	for n := 0; n < 60 && at < 0; n++ {
		c.round()
		for i, ns := range c.spaces {
			if len(ns.core.Lingering()) > 0 {
				at = i
			}
		}
	}
	if at < 0 || listed != keys || len(lists(0))+len(lists(1)) != listed {
		t.Fatalf("node %d holds a shard on; of %d conflicts %d are listed", at, listed, len(lists(0))+len(lists(1)))
	}
	number := c.spaces[at].core.Lingering()[0].Shard()
	restored := 0
	for _, k := range lists(at) {
		key := string(k.Record.Key)
		if c.spaces[at].core.Home(k.Record.Key) == number {
			if _, err := c.spaces[at].RestoreKept(t.Context(), k); err != nil {
				t.Fatalf("restore: %v", err)
			}
			restored++
			hosts, _ := c.hosts(key)
			if !slices.ContainsFunc(hosts, func(i int) bool { // one acknowledges a write
				r := c.held(i, key)
				return r != nil && string(r.Value) == string(k.Record.Value)
			}) {
				t.Errorf("no host of %q holds what was restored", key)
			}
		}
	}
	for i := range c.spaces {
		for _, k := range lists(i) {
			c.must(c.spaces[i].ForgetKept(t.Context(), k.Seq))
		}
	}
	if restored == 0 {
		t.Error("nothing was restored")
	}
	c.settle(0, 1, 2, 3, 4)
}

// A node without a shard has no records that a sync could prove equal.
func TestUnprovedWithoutShards(t *testing.T) {
	c := newShardCluster(t, 2, Config{NoPush: true})
	ticket, err := c.spaces[0].Invite(t.Context(), InviteOptions{Role: RoleRead})
	if err != nil {
		t.Fatal(err)
	}
	config := c.base
	config.Dir = t.TempDir()
	n := openForTest(t, config)
	ns, err := n.Join(t.Context(), ticket)
	if err != nil {
		t.Fatal(err)
	}
	c.nodes, c.spaces, c.config = append(c.nodes, n), append(c.spaces, ns), append(c.config, config)
	c.settle(0, 1)
	for range 3 {
		c.round()
	}
	for i, n := range c.nodes {
		if names := n.Unproved(time.Hour); len(names) != 0 {
			t.Errorf("node %d, with %d shards, is not proved: %q", i, len(c.numbers(i)), names)
		}
	}
}
