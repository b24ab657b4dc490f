package peer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer/status"
)

// What a node lists as conflicts stays with it when it hands their shard over. Each member tells
// what it keeps, and what is restored is written to the shard's hosts.
func TestConflictsStayWithNode(t *testing.T) {
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
	c.roundsUntil("all hold shards", func() bool {
		return !slices.ContainsFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { n := len(c.numbers(i)); return n == 0 || n == 8 })
	})
	c.settle(0, 1, 2, 3, 4)
	lists := func(i int) (all []dbadapter.Kept) {
		t.Helper()
		for k, err := range c.spaces[i].Conflicts(t.Context()) {
			c.must(err)
			all = append(all, k)
		}
		return all
	}
	if listed := len(lists(0)) + len(lists(1)); listed != keys || c.spaces[0].Info().Conflicts != len(lists(0)) {
		t.Fatalf("of %d conflicts %d are listed, %+v", keys, listed, c.spaces[0].Info())
	}
	asker := c.spaces[4]
	c.roundsUntil("both say that they keep entries", func() bool { return len(asker.Keepers()) == 2 })
	for i := range 2 {
		var there []status.KeptAt
		for more := true; more; {
			after := uint64(0)
			if n := len(there); n > 0 {
				after = there[n-1].Seq
			}
			page, m, err := asker.KeptAt(t.Context(), c.nodes[i].ID(), dbadapter.KeptConflict, after)
			c.must(err)
			there, more = append(there, page...), m
		}
		here := lists(i)
		if len(there) != len(here) {
			t.Fatalf("node %d tells of %d entries, and has %d", i, len(there), len(here))
		}
		for n, k := range here {
			if one := there[n]; one.Seq != k.Seq || string(one.Record.Key) != string(k.Record.Key) || one.Record.Version != k.Record.Version || one.By != k.By ||
				!one.At.Equal(k.At) || one.Size != int64(len(k.Record.Value)) || one.Record.Value != nil {
				t.Errorf("node %d tells %+v of %+v", i, one, k)
			}
		}
	}
	if _, _, err := asker.KeptAt(t.Context(), c.nodes[2].ID(), dbadapter.KeptSetAside, 0); err != nil {
		t.Errorf("one that keeps nothing: %v", err)
	}
	away := 0 // an entry of a shard that its node holds no longer
	for _, k := range lists(0) {
		key := string(k.Record.Key)
		hosts, _ := c.hosts(key)
		if slices.Contains(hosts, 0) {
			continue
		}
		away++
		if _, err := c.spaces[0].RestoreKept(t.Context(), k); err != nil {
			t.Fatalf("restore: %v", err)
		}
		if !slices.ContainsFunc(hosts, func(i int) bool { // one acknowledges a write
			r := c.held(i, key)
			return r != nil && string(r.Value) == string(k.Record.Value)
		}) {
			t.Errorf("no host of %q holds what was restored", key)
		}
	}
	if away == 0 {
		t.Fatal("node 0 holds each shard still of which it keeps entries")
	}
	for i := range 2 {
		for _, k := range lists(i) {
			c.must(c.spaces[i].ForgetKept(t.Context(), k.Seq))
		}
	}
	c.roundsUntil("nobody keeps entries", func() bool { return len(asker.Keepers()) == 0 })
	for i, ns := range c.spaces {
		if logs, held := len(ns.core.Logs()), len(ns.core.Sets()); logs != held {
			t.Errorf("node %d has %d logs, and holds %d shards", i, logs, held)
		}
	}
	c.must(c.nodes[1].Close(t.Context()))
	if _, _, err := asker.KeptAt(t.Context(), c.nodes[1].ID(), dbadapter.KeptConflict, 0); !errors.Is(err, ErrUnreachable) {
		t.Errorf("of a node that is down: %v", err)
	}
}

// A node without a shard has no records that a sync could prove equal.
func TestUnprovedWithoutShards(t *testing.T) {
	c := newShardCluster(t, 2, Config{NoPush: true})
	ticket, err := c.spaces[0].Invite(t.Context(), InviteOptions{Role: RoleRead})
	must(t, err)
	config := c.base
	config.Dir = t.TempDir()
	n := openForTest(t, config)
	ns, err := n.Join(t.Context(), ticket)
	must(t, err)
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
