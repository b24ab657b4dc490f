package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// A dated item whose key has a later entry that leads to no record is written as of now, once no shard
// has a record for sure, and not before; it says what it does, and is there for all to read then.
func TestImportBehindAnEntryWithoutRecord(t *testing.T) {
	c := newWriterCluster(t, 3)
	key := []byte("announced")
	items := append(shardItems(0, 3, "v"), Item{Key: key, Value: []byte("old"), Time: c.base.Clock().Add(-time.Minute).Truncate(time.Millisecond)})
	c.entered(0, &dbadapter.Record{Key: key}, c.spaces[0].core.OwnShard(key))
	c.round()
	c.follow()
	for begun := c.time; c.time < begun+node.AbsentFor; c.follow() {
		got, err := c.spaces[1].Import(t.Context(), sequence(items), Acks(AckAll))
		if !errors.Is(err, ErrUnsure) || got.Items != 3 {
			t.Fatalf("after %v: %+v, %v", c.time-begun, got, err)
		}
		c.pass(node.AbsentFor / 4)
	}
	got, err := c.spaces[1].Import(t.Context(), sequence(items[3:]), Acks(AckAll))
	if err != nil || got != (ImportResult{Items: 1, Written: 1, Late: 1}) {
		t.Fatalf("in the end: %+v, %v", got, err)
	}
	c.follow()
	for i := range c.spaces {
		if value, err := c.get(i, string(key)); err != nil || value != "old" {
			t.Errorf("node %d reads %q, %v", i, value, err)
		}
	}
	if got, err := c.spaces[2].Import(t.Context(), sequence(items[3:]), Acks(AckAll)); err != nil || got.Items != 1 || got.Written != 0 {
		t.Errorf("again: %+v, %v", got, err)
	}
	if n := c.routedCluster.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// Such an entry may hide a record of another shard. An item that is dated before that is stale; one that is
// dated after it does not take its place while it is hidden.
func TestImportBehindAnEntryThatHides(t *testing.T) {
	c := newWriterCluster(t, 3)
	const key = "hidden"
	own := c.spaces[0].core.OwnShard([]byte(key))
	dated := func(name string) []Item {
		return []Item{{Key: []byte(key), Value: []byte(name), Time: c.base.Clock().Truncate(time.Millisecond)}}
	}
	before := dated("before")
	c.now.Add(int64(time.Second))
	c.shardCluster.put(0, own, key)
	c.round()
	c.now.Add(int64(time.Second))
	after := dated("after")
	c.now.Add(int64(time.Second))
	c.entered(1, &dbadapter.Record{Key: []byte(key)}, (own+1)%8)
	c.round()
	c.follow()
	for range 4 {
		if got, err := c.spaces[2].Import(t.Context(), sequence(after)); !errors.Is(err, ErrUnsure) || got.Items != 0 {
			t.Fatalf("dated after it: %+v, %v", got, err)
		}
		got, err := c.spaces[2].Import(t.Context(), sequence(before))
		if stale := err == nil && got == (ImportResult{Items: 1, Stale: 1}); !stale && !errors.Is(err, ErrUnsure) || !stale && c.time > time.Hour+2*node.AbsentFor {
			t.Fatalf("dated before it: %+v, %v", got, err)
		}
		c.pass(node.AbsentFor / 2)
		c.follow()
	}
	if value, err := c.get(2, key); value != "by 0" {
		t.Errorf("it reads %q, %v", value, err)
	}
}
