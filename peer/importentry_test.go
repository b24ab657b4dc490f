package peer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// importedBesideATombstone imports a key at a node that is no host of its entry. One host of that holds the
// entry that the locator leads to expect, and the other one, which is asked first, the tombstone from before.
// own is the importing node's own shard of the key.
func importedBesideATombstone(t *testing.T) (c *writerCluster, key string, own placement.Shard) {
	t.Helper()
	c = newWriterCluster(t, 4)
	at := func(id node.ID) int {
		return slices.IndexFunc(c.nodes, func(n *Node) bool { return node.ID(n.ID()) == id })
	}
	var ahead, behind, third int
	for n := 0; key == ""; n++ {
		k := fmt.Append(nil, "key ", n)
		hosts, err := c.spaces[0].core.RemoteIn(k, c.spaces[0].core.Entries(k)).Hosts()
		c.must(err)
		ahead, behind = at(hosts[0]), at(hosts[1])
		for third = range c.nodes {
			if own = c.spaces[third].core.OwnShard(k); third != ahead && third != behind && own != c.spaces[ahead].core.OwnShard(k) {
				key = string(k)
				break
			}
		}
	}
	_, err := c.put(ahead, key, "first", route.All)
	c.must(err)
	c.follow()
	_, err = c.spaces[behind].Delete(t.Context(), []byte(key), Acks(AckAll))
	c.must(err)
	c.follow()
	sh, err := c.spaces[behind].numbered(c.spaces[behind].core.Entries([]byte(key)))
	c.must(err)
	_, err = sh.sync(t.Context(), c.nodes[ahead].ID(), SyncOptions{})
	c.must(err)
	_, err = c.put(ahead, key, "again", 1) // nothing is pushed
	c.must(err)
	c.follow()
	c.now.Add(int64(time.Second)) // the import is later, by the version too
	c.nearest(c.spaces[third], behind, ahead)
	got, err := c.spaces[third].Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("imported")}}))
	if err != nil || got != (ImportResult{Items: 1, Written: 1}) {
		t.Fatalf("%+v, %v", got, err)
	}
	return c, key, own
}

// An import writes its own entry also where a host holds the one that the locator has led to expect, and
// another host has the tombstone of an entry: all nodes read what the import has written.
func TestImportWritesItsEntry(t *testing.T) {
	t.Parallel()
	c, key, _ := importedBesideATombstone(t)
	for range 6 {
		c.round()
		c.follow()
	}
	for i := range c.spaces {
		if value, err := c.get(i, key); err != nil || value != "imported" {
			t.Errorf("node %d reads %q, %v", i, value, err)
		}
	}
}

// The same, where another node deletes the key then: neither what was imported comes back, nor what it has replaced.
func TestImportedStaysDeleted(t *testing.T) {
	t.Parallel()
	c, key, own := importedBesideATombstone(t)
	for range 4 {
		c.round()
		c.follow()
	}
	if _, err := c.spaces[0].Delete(t.Context(), []byte(key), Acks(AckAll)); err != nil {
		t.Fatal(err)
	}
	for rounds := 0; rounds < 60 && c.heldBeside(own, key); rounds++ { // until the deletion is collected
		c.round()
		c.follow()
	}
	for range 14 { // each host looks its shards through every 10 minutes
		c.pass(time.Minute)
		c.meet()
	}
	for i := range c.nodes {
		if got, err := c.get(i, key); !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDeleted) {
			t.Errorf("node %d reads %q of what was deleted, %v", i, got, err)
		}
	}
}

// An import that a host has refused for another one's entry follows that one into its shard, where it takes
// the place of the record, also if its own entry, which is later, is what it finds then.
func TestImportFollowsWhatWasRefusedFor(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	a, b, _, key := c.firstWriters() // both have the entry; a has no part in b's shard
	own, ns := c.spaces[b].core.OwnShard([]byte(key)), c.spaces[b]
	remote, record, entries, entry := c.firstWrite(b, key)
	_, err := ns.follows.byWriter.HandOver(t.Context(), entries, entry, 1)
	c.must(err)
	_, err = ns.follows.byWriter.HandOver(t.Context(), remote, record, 1)
	c.must(err)
	c.now.Add(int64(time.Second))
	got, err := c.spaces[a].Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("second")}}), Acks(AckAll))
	if err != nil || got != (ImportResult{Items: 1, Written: 1}) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, at := range c.holding(key, own) {
		if got := c.valueAt(at, own, key); got != "second" {
			t.Errorf("node %d holds %q of what was replaced", at, got)
		}
	}
	for range 6 {
		c.meet()
	}
	if listed := c.conflicts(key); len(listed) > 0 {
		t.Errorf("conflicts: %v", listed)
	}
}
