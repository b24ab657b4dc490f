package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// requests are the messages with records for hosts to hold that a node has sent.
func (c *writerCluster) requests(i int) int {
	return c.counted(i, "syncd_routed_requests_total", "write")
}

// shardIn is the shard in which a node finds a key.
func (c *writerCluster) shardIn(i int, key string) placement.Shard {
	c.t.Helper()
	f, err := c.spaces[i].lookUp(c.t.Context(), []byte(key), false)
	if err != nil || !f.Sure || f.Record == nil {
		c.t.Fatalf("node %d: %q: %+v, %v", i, key, f, err)
	}
	return f.Shard
}

// An import by placement writer is that of the other placements: bulk, found everywhere, unchanged
// when it is repeated, also at another node, and over what is there without a conflict. What it
// makes is in a shard of the node that imports, but for dated items, which are in their home.
func TestImportWriters(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	items := shardItems(0, 500, "first ")
	before := c.requests(2)
	got, err := c.spaces[2].Import(t.Context(), sequence(items), Acks(AckAll))
	if want := (ImportResult{Items: 500, Written: 500, Late: got.Late}); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	if n := c.requests(2) - before; n > 200 {
		t.Errorf("%d requests for 500 items of 8 shards: they go one by one", n)
	}
	for i := range c.spaces { // the importing node reads at once what it wrote, the others when they have heard
		if i == 0 {
			continue
		}
		c.follow()
	}
	for i, ns := range c.spaces {
		for _, item := range items {
			if value, err := c.get(i, string(item.Key)); err != nil || value != string(item.Value) {
				t.Fatalf("node %d reads %q of %q: %v", i, value, item.Key, err)
			}
			want := c.spaces[2].core.OwnShard(item.Key)
			if !item.Time.IsZero() && got.Late == 0 {
				want = ns.core.Home(item.Key)
			}
			if shard := c.shardIn(i, string(item.Key)); shard != want && got.Late == 0 {
				t.Fatalf("%q, dated %v, is in shard %d: want %d", item.Key, item.Time, shard, want)
			}
		}
		again, err := ns.Import(t.Context(), sequence(items), Acks(AckAll))
		if err != nil || again.Items != 500 || again.Unchanged != 500-again.Stale || again.Stale > got.Late {
			t.Errorf("again at node %d: %+v, %v", i, again, err)
		}
	}
	over := shardItems(0, 600, "second ")
	over = append(over, Item{Key: []byte("key 1"), Value: []byte("last")}, Item{Key: []byte("key 2"), Deleted: true}, Item{Key: []byte("none"), Deleted: true})
	for i := range over {
		over[i].Time = time.Time{}
	}
	if got, err = c.spaces[1].Import(t.Context(), sequence(over), Acks(AckAll)); err != nil || got != (ImportResult{Items: 603, Written: 602, Unchanged: 1}) {
		t.Errorf("over it: %+v, %v", got, err)
	}
	c.follow()
	for i, ns := range c.spaces {
		for key, want := range map[string]string{"key 0": "second 0", "key 1": "last", "key 599": "second 599"} {
			if value, err := c.get(i, key); err != nil || value != want {
				t.Errorf("node %d reads %q of %q: %v", i, value, key, err)
			}
		}
		if _, err := ns.Get(t.Context(), []byte("key 2")); !errors.Is(err, ErrDeleted) && !errors.Is(err, ErrNotFound) {
			t.Errorf("node %d: %v", i, err)
		}
	}
	if shard, was := c.shardIn(0, "key 1"), c.spaces[2].core.OwnShard([]byte("key 1")); shard != was {
		t.Errorf("what another node imported over it moved it from shard %d to %d", was, shard)
	}
	if got, err = c.spaces[0].Import(t.Context(), sequence([]Item{{Key: []byte("key 2"), Value: []byte("back")}}), Acks(AckAll)); err != nil || got.Written != 1 {
		t.Errorf("over a tombstone: %+v, %v", got, err)
	}
	c.follow()
	if value, err := c.get(1, "key 2"); err != nil || value != "back" {
		t.Errorf("what was deleted and is imported: %q, %v", value, err)
	}
	if n := c.routedCluster.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
	bad := append(shardItems(600, 610, "third "), Item{})
	if got, err = c.spaces[2].Import(t.Context(), sequence(bad)); err == nil || got.Items != 10 || got.Written+got.Stale != 10 {
		t.Errorf("an item without a key: %+v, %v", got, err)
	}
	if _, err := c.spaces[2].Import(t.Context(), sequence(items), Acks(3)); !errors.Is(err, ErrInvalid) {
		t.Errorf("three of two hosts: %v", err)
	}
}

// Two nodes that import the same dated items, of which neither has heard from the other, make the
// same records, in the same shards.
func TestImportWritersDated(t *testing.T) {
	c := newWriterCluster(t, 3)
	items := shardItems(0, 50, "v")
	for i := range items {
		items[i].Time, items[i].Expires = c.base.Clock().Add(-time.Second).Truncate(time.Millisecond), time.Time{}
	}
	for i := range c.spaces {
		if got, err := c.spaces[i].Import(t.Context(), sequence(items)); err != nil || got.Items != 50 || got.Late > 0 || got.Stale > 0 {
			t.Fatalf("node %d: %+v, %v", i, got, err)
		}
	}
	c.follow()
	for i := range c.spaces {
		for _, item := range items {
			if shard := c.shardIn(i, string(item.Key)); shard != c.spaces[0].core.Home(item.Key) {
				t.Errorf("node %d finds %q in shard %d", i, item.Key, shard)
			}
		}
	}
	if n := c.routedCluster.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// A node that knows nothing of the directory imports as one that does, and asks for more.
func TestImportWritersUnlocated(t *testing.T) {
	c := newWriterCluster(t, 3)
	items := shardItems(0, 80, "v")
	_, err := c.spaces[0].Import(t.Context(), sequence(items[:60]), Acks(AckAll))
	c.must(err)
	c.reopen(2)
	for k := range 60 {
		if a := c.spaces[2].whereIs(fmt.Append(nil, "key ", k)); a.Where == directory.Nowhere {
			t.Fatal("the locator knows where keys are: the test shows nothing")
		}
	}
	got, err := c.spaces[2].Import(t.Context(), sequence(items), Acks(AckAll))
	if err != nil || got != (ImportResult{Items: 80, Written: 20, Unchanged: 60 - got.Stale, Stale: got.Stale, Late: got.Late}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// An import that broke off between the entries and the records is repeated, and then whole.
func TestImportWritersBrokeOff(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	items := shardItems(0, 40, "v")
	for _, item := range items[:20] {
		c.entered(0, &dbadapter.Record{Key: item.Key, Value: item.Value}, c.spaces[0].core.OwnShard(item.Key))
	}
	c.follow()
	for i := range items {
		items[i].Time, items[i].Expires = time.Time{}, time.Time{}
	}
	got, err := c.spaces[1].Import(t.Context(), sequence(items), Acks(AckAll))
	if err != nil || got != (ImportResult{Items: 40, Written: 40}) {
		t.Fatalf("%+v, %v", got, err)
	}
	c.follow()
	for at := range c.spaces {
		for n, item := range items {
			want := c.spaces[1].core.OwnShard(item.Key)
			if n < 20 { // its entry binds the key
				want = c.spaces[0].core.OwnShard(item.Key)
			}
			if shard := c.shardIn(at, string(item.Key)); shard != want {
				t.Errorf("node %d finds %q in shard %d: want %d", at, item.Key, shard, want)
			}
		}
	}
}

// While a host is away an import goes on at the others. All hosts cannot hold it then, and the first
// item is named that they do not; when the host is there again the import ends.
func TestImportWritersWithoutHost(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	items := shardItems(0, 100, "v")
	c.must(c.nodes[2].Close(context.Background()))
	got, err := c.spaces[0].Import(t.Context(), sequence(items))
	if err != nil || got.Items != 100 || got.Written != 100 {
		t.Fatalf("one of three is away: %+v, %v", got, err)
	}
	got, err = c.spaces[0].Import(t.Context(), sequence(items), Acks(AckAll))
	if !errors.Is(err, ErrUnconfirmed) || got.Items >= 100 || !strings.Contains(err.Error(), fmt.Sprintf("item %d: ", got.Items+1)) {
		t.Errorf("at all hosts: %+v, %v", got, err)
	}
	c.nodes[2] = openForTest(t, c.config[2])
	c.spaces[2], err = c.nodes[2].Namespace("notes")
	c.must(err)
	for _, i := range []int{0, 1} {
		_, err := c.nodes[2].Connect(t.Context(), c.nodes[i].Addrs()[0])
		c.must(err)
	}
	got, err = c.spaces[0].Import(t.Context(), sequence(items), Acks(AckAll))
	if err != nil || got.Items != 100 {
		t.Errorf("all are there: %+v, %v", got, err)
	}
	for _, item := range items {
		for _, set := range []placement.Shard{c.spaces[0].core.Entries(item.Key), c.shardOfImported(0, string(item.Key))} {
			for _, i := range c.holding(string(item.Key), set) {
				if r, err := c.spaces[i].core.RemoteIn(item.Key, set).Here().Held(item.Key); err != nil || r == nil {
					t.Fatalf("node %d lacks %q of set %d: %v", i, item.Key, set, err)
				}
			}
		}
	}
	if n := c.routedCluster.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// shardOfImported is the shard that a host of the directory says a key is in.
func (c *writerCluster) shardOfImported(i int, key string) placement.Shard {
	c.t.Helper()
	f, err := c.spaces[i].lookUpIn(c.t.Context(), c.spaces[i].core.Entries([]byte(key)), []byte(key), false)
	if err != nil || f.Record == nil {
		c.t.Fatalf("%q: %+v, %v", key, f, err)
	}
	shard, err := directory.ShardOf(f.Record, 8)
	c.must(err)
	return shard
}

// On a machine so slow that the records of a window would come more than half a minute behind their
// entries, an import files fewer items at once, and ends.
func TestImportWritersOnASlowMachine(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	f := c.spaces[2].follows
	var now atomic.Int64
	now.Store(int64(f.now()))
	f.now = func() time.Duration { return time.Duration(now.Add(int64(node.EntryPatience / 300))) } // each look at the clock takes so long
	items := shardItems(0, 1000, "")
	if got, err := c.spaces[2].Import(t.Context(), sequence(items), Acks(AckAll)); err != nil || got.Items != 1000 || got.Written != 1000 {
		t.Fatalf("%+v, %v", got, err)
	}
	c.follow()
	for _, item := range items {
		if value, err := c.get(0, string(item.Key)); err != nil || value != string(item.Value) {
			t.Fatalf("%q of %q: %v", value, item.Key, err)
		}
	}
	if n := c.routedCluster.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}
