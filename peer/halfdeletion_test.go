package peer

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// deletedHalfWay deletes a key of a node's own shard, and ends before its entry is deleted.
func (c *writerCluster) deletedHalfWay(i int, key string) {
	c.t.Helper()
	ns := c.spaces[i]
	remote := ns.core.RemoteIn([]byte(key), ns.core.OwnShard([]byte(key)))
	found, err := ns.follows.byWriter.LookUp(c.t.Context(), []byte(key), false)
	c.must(err)
	tombstone, err := remote.Make(node.Draft{Record: dbadapter.Record{Key: []byte(key), Deleted: true}, Seen: []*dbadapter.Record{found.Record}})
	c.must(err)
	_, err = ns.follows.byWriter.HandOver(c.t.Context(), remote, tombstone, route.All)
	c.must(err)
}

// A deletion that ended between the record and its entry is carried to its end by deleting again.
func TestDeletedAgain(t *testing.T) {
	c := newWriterCluster(t, 3)
	const key = "half"
	_, err := c.put(0, key, "1", route.All)
	c.must(err)
	c.follow()
	c.deletedHalfWay(0, key)
	c.round()
	c.follow()
	_, err = c.spaces[1].Delete(t.Context(), []byte(key), Acks(AckAll))
	c.must(err)
	entries := c.spaces[0].core.Entries([]byte(key))
	for _, at := range c.holding(key, entries) {
		if c.present(at, entries, key) {
			t.Errorf("the entry is there still at node %d", at)
		}
	}
}

// Of two first writes that met the lesser one is a listed conflict, also where the greater one's
// deletion has ended between its record and its entry.
func TestHalfDeletedWinner(t *testing.T) {
	c := newWriterCluster(t, 4)
	a, b, _, key := c.firstWriters()
	c.part(b)
	c.follow()
	c.pass(3 * directory.Fresh)
	for _, i := range []int{a, b} {
		_, err := c.put(i, key, fmt.Sprint("by ", i), 1)
		c.must(err)
		c.now.Add(int64(time.Second))
	}
	c.heal()
	for range 3 {
		c.round()
		c.follow()
	}
	c.deletedHalfWay(b, key)
	c.follow()
	for range 24 {
		c.meet()
		c.pass(node.AbsentFor / 8)
	}
	c.follow()
	for i := range c.nodes {
		if got, err := c.get(i, key); err == nil {
			t.Errorf("node %d reads %q of what was deleted", i, got)
		}
	}
	if len(c.conflicts(key)) == 0 {
		t.Error("what has lost is listed at no node")
	}
}
