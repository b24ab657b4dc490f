package peer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// A first write whose author ended before the record leaves its key to each other node: a put and a
// deletion take it over at once, and a look-up becomes sure that there is none.
func TestEntryWithoutRecordBindsNoKey(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	at := func(what string, by int) string {
		key := fmt.Sprint(what, by)
		c.entered(0, &dbadapter.Record{Key: []byte(key)}, c.spaces[0].core.OwnShard([]byte(key)))
		c.follow()
		return key
	}
	for i, ns := range c.spaces {
		key := at("put by ", i)
		if got, err := c.get(i, key); !errors.Is(err, ErrUnsure) {
			t.Errorf("node %d, of an entry of just now: %q, %v", i, got, err)
		}
		if _, err := c.put(i, key, "1", route.All); err != nil {
			t.Errorf("node %d puts: %v", i, err)
		}
		c.follow()
		if got, err := c.get(i, key); err != nil || got != "1" {
			t.Errorf("node %d has put it, and reads %q, %v", i, got, err)
		}
		key = at("deleted by ", i)
		if _, err := ns.Delete(t.Context(), []byte(key), Acks(AckAll)); err != nil {
			t.Errorf("node %d deletes: %v", i, err)
		}
		c.follow()
		if got, err := c.get(i, key); !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDeleted) || errors.Is(err, ErrUnsure) {
			t.Errorf("node %d has deleted it, and reads %q, %v", i, got, err)
		}
		key = at("looked up by ", i)
		for begun := c.time; c.time < begun+node.EntryPatience; c.follow() {
			if got, err := c.get(i, key); !errors.Is(err, ErrUnsure) {
				t.Fatalf("node %d, after %v: %q, %v", i, c.time-begun, got, err)
			}
			c.pass(node.EntryPatience / 4)
		}
		if got, err := c.get(i, key); !errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsure) {
			t.Errorf("node %d, in the end: %q, %v", i, got, err)
		}
		none := dbadapter.Version{}
		if _, err := ns.PutIf(t.Context(), []byte(key), []byte("1"), none); err != nil {
			t.Errorf("node %d puts where there is none: %v", i, err)
		}
	}
}

// An entry that leads to no record may hide one of another shard: that is what a look-up finds, and
// it never says that there is none.
func TestEntryWithoutRecordHidesNone(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	const key = "hidden"
	own := c.spaces[0].core.OwnShard([]byte(key))
	c.shardCluster.put(0, own, key)
	c.round()
	c.now.Add(int64(time.Second))
	c.entered(1, &dbadapter.Record{Key: []byte(key)}, (own+1)%8)
	for range 6 {
		c.follow()
		for i := range c.nodes {
			got, err := c.get(i, key)
			if errors.Is(err, ErrNotFound) || err == nil && got != "by 0" {
				t.Errorf("node %d reads %q, %v", i, got, err)
			}
			if got != "by 0" && c.time > time.Hour+2*node.AbsentFor {
				t.Errorf("node %d finds %q, %v", i, got, err)
			}
		}
		c.pass(node.AbsentFor / 2)
	}
}

// What the hosts of the directory said once does not count for ever: while they are out of reach, the
// key may be deleted, and written in another shard.
func TestDecisionsAge(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	var key string
	var in, other []int // the hosts of the key's shard, and of its entry
	for i := 0; ; i++ {
		key = fmt.Sprint("aged ", i)
		in, other = c.holding(key, c.spaces[0].core.OwnShard([]byte(key))), c.holding(key, c.spaces[0].core.Entries([]byte(key)))
		if in[0] == 0 && len(union(in, other)) == 4 {
			break
		}
		if i == 1000 {
			t.Fatal("no key's entry is apart from its record: choose other idsOfWriters")
		}
	}
	_, err := c.put(0, key, "old", route.All)
	c.must(err)
	c.follow()
	if got, err := c.get(0, key); err != nil || got != "old" {
		t.Fatalf("it reads %q, %v", got, err)
	}
	// A deletion fails half way: the directory has heard of it. Then the key is written first in
	// another shard, whose hosts the asker does not reach.
	y := other[0]
	own, err := c.spaces[0].numbered(c.spaces[0].core.OwnShard([]byte(key)))
	c.must(err)
	old, err := own.set.Held([]byte(key))
	c.must(err)
	c.now.Add(int64(time.Second))
	c.part(other...)
	c.entered(y, &dbadapter.Record{Key: []byte(key), Deleted: true}, 0, old)
	c.now.Add(int64(time.Second))
	if _, err := c.put(y, key, "new", 1); err != nil {
		t.Fatal(err)
	}
	c.pass(3 * directory.Fresh)
	for range 2 {
		c.round()
		for _, i := range in {
			if got, err := c.get(i, key); !errors.Is(err, ErrUnsure) {
				t.Errorf("node %d is sure of %q, %v", i, got, err)
			}
		}
	}
}

func union(a, b []int) map[int]bool {
	all := map[int]bool{}
	for _, i := range append(append([]int(nil), a...), b...) {
		all[i] = true
	}
	return all
}
