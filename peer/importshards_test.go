package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/routing"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// shardItems are so many items of an import: every fifth one is dated, every seventh expires.
func shardItems(from, to int, value string) []Item {
	var all []Item
	for i := from; i < to; i++ {
		item := Item{Key: fmt.Appendf(nil, "key %d", i), Value: fmt.Append(nil, value, i)}
		if i%5 == 0 {
			item.Time = time.UnixMilli(1_700_000_000_000)
		}
		if i%7 == 0 {
			item.Expires = time.Now().Add(time.Hour).Truncate(time.Millisecond)
		}
		all = append(all, item)
	}
	return all
}

// conflicts counts those that nodes list.
func (c *routedCluster) conflicts() (n int) {
	for _, ns := range c.spaces {
		for _, sh := range ns.shards() {
			n += sh.set.Store.KeptCount(dbadapter.KeptConflict)
		}
	}
	return n
}

// imports imports items, and compares what is counted, but for the earliest date.
func (c *routedCluster) imports(i int, all []Item, want ImportResult, options ...ImportOptions) ImportResult {
	c.t.Helper()
	got, err := c.spaces[i].ImportWith(c.t.Context(), items(all...), append(options, ImportOptions{})[0])
	counts := got
	counts.Earliest, counts.From = time.Time{}, time.Time{}
	if err != nil || counts != want {
		c.t.Errorf("at node %d: %+v, %v; want %+v", i, got, err, want)
	}
	return got
}

// What is imported at any node is at all hosts of its shard; imported again, also by another
// node, it is unchanged; what has another value is replaced, without a conflict.
func TestImportShards(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	all := shardItems(0, 500, "first ")
	c.imports(3, all, ImportResult{Items: 500, Written: 500}, ImportOptions{Ack: new(All)})
	for i := range c.spaces {
		c.imports(i, all, ImportResult{Items: 500, Unchanged: 500})
	}
	for _, item := range all {
		hosts, _ := c.hosts(string(item.Key))
		for _, i := range hosts {
			if r := c.held(i, string(item.Key)); r == nil || string(r.Value) != string(item.Value) || r.Expires != 0 && item.Expires.IsZero() {
				t.Fatalf("the host %d of %q holds %+v", i, item.Key, r)
			}
		}
	}
	over := shardItems(0, 600, "second ")
	over = append(over, Item{Key: []byte("key 1"), Value: []byte("last")}, Item{Key: []byte("key 2"), Deleted: true})
	for i := range over {
		over[i].Time = time.Time{}
	}
	c.imports(1, over, ImportResult{Items: 602, Written: 602}, ImportOptions{Ack: new(All)})
	for i, ns := range c.spaces {
		for key, want := range map[string]string{"key 0": "second 0", "key 1": "last", "key 599": "second 599"} {
			if r, err := ns.Get(t.Context(), []byte(key)); err != nil || string(r.Value) != want {
				t.Errorf("node %d reads %q of %q: %v", i, r.Value, key, err)
			}
		}
		if _, err := ns.Get(t.Context(), []byte("key 2")); !errors.Is(err, ErrDeleted) {
			t.Errorf("node %d: %v", i, err)
		}
	}
	if n := c.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
	bad := append(shardItems(600, 610, "third "), Item{})
	if got, err := c.spaces[2].Import(t.Context(), items(bad...)); err == nil || got.Items != 10 || got.Written != 10 || !strings.Contains(err.Error(), "item 11: ") {
		t.Errorf("an item without a key: %+v, %v", got, err)
	}
	if _, err := c.spaces[2].ImportWith(t.Context(), items(all...), ImportOptions{Ack: new(Level(3))}); !errors.Is(err, ErrInvalid) {
		t.Errorf("three of two hosts: %v", err)
	}
}

// While a host of a shard is away an import ends with the first item that too few hosts hold. Of three
// hosts one may be away, or hang.
func TestImportShardsWithoutAHost(t *testing.T) {
	t.Parallel()
	c := newReplicatedCluster(t, placement.Hash, 4, 3, Config{NoPush: true})
	all := shardItems(0, 300, "v")
	c.nodes[2].host.SetStreamHandler(routing.Protocol, func(s network.Stream) { _, _ = io.Copy(io.Discard, s) })
	c.nodes[0].routing.CloseIdle() // none is idle that goes on to be served
	c.imports(0, all, ImportResult{Items: 300, Written: 300})
	c.must(c.nodes[2].Close(context.Background()))
	c.imports(0, all, ImportResult{Items: 300, Unchanged: 300})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, err := c.spaces[0].ImportWith(ctx, items(shardItems(0, 300, "w")...), ImportOptions{Ack: new(All)})
	if err == nil || got.Items >= 300 || !strings.Contains(err.Error(), fmt.Sprintf("item %d: ", got.Items+1)) {
		t.Errorf("at all hosts: %+v, %v", got, err)
	}
}

// promises has the hosts of a key promise to hold all up to now, as for a deletion in its shard.
func (c *routedCluster) promises(key string) {
	c.t.Helper()
	home := c.spaces[0].core.Home([]byte(key))
	var other []byte
	for i := 0; other == nil; i++ {
		if k := fmt.Appendf(nil, "other %d", i); c.spaces[0].core.Home(k) == home {
			other = k
		}
	}
	_, err := c.put(0, string(other), "1", All)
	c.must(err)
	_, err = c.spaces[0].Delete(c.t.Context(), other, Ack(All))
	c.must(err)
	for range 12 {
		c.round()
	}
}

// sameShard are keys of the shard of the first one.
func (c *routedCluster) sameShard(n int) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprint("same ", i); len(keys) == 0 || c.spaces[0].core.Home([]byte(key)) == c.spaces[0].core.Home([]byte(keys[0])) {
			keys = append(keys, key)
		}
	}
	return keys
}

// An item whose date the hosts take no more is refused, and nothing of it is written; the others are
// written. As new, it is written over what is not later than its date.
func TestImportShardsOfDatesThatAreNotTaken(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	keys := c.sameShard(6)
	at := c.nodes[0].now().Truncate(time.Millisecond)
	item := func(i int, value string, date time.Time) Item {
		return Item{Key: []byte(keys[i]), Value: []byte(value), Time: date}
	}
	c.imports(0, []Item{item(1, "earlier", at), item(2, "same", at.Add(time.Second)), item(3, "later", at.Add(time.Minute))}, ImportResult{Items: 3, Written: 3})
	c.now.Add(int64(2 * time.Minute))
	_, err := c.put(0, keys[4], "put", All)
	c.must(err)
	c.promises(keys[0])
	date := at.Add(time.Second)
	all := []Item{
		item(0, "new", date), item(1, "over", date), item(2, "same", date), item(3, "before", date), item(4, "before", date),
		item(5, "now", c.nodes[0].now().Add(time.Minute).Truncate(time.Millisecond)),
	}
	for i := range c.spaces {
		var refused []int64
		want := ImportResult{Items: 6, Written: 1, Unchanged: 1, Stale: 2, Refused: 2}
		if i > 0 {
			want.Written, want.Unchanged = 0, 2
		}
		got := c.imports(i, all, want, ImportOptions{Ack: new(All), OnRefused: func(n int64, item Item) {
			if string(item.Key) != keys[n] {
				t.Errorf("item %d is told to be %q", n, item.Key)
			}
			refused = append(refused, n)
		}})
		if fmt.Sprint(refused) != "[0 1]" || !got.From.After(date) {
			t.Errorf("refused are %v, from %s", refused, got.From)
		}
	}
	if r, err := c.spaces[1].Get(t.Context(), []byte(keys[0]), Read(All)); !errors.Is(err, ErrNotFound) {
		t.Errorf("a refused item: %+v, %v", r, err)
	}
	c.imports(2, all, ImportResult{Items: 6, Written: 2, Unchanged: 2, Stale: 2, AsNew: 2}, ImportOptions{AsNew: true, Ack: new(All)})
	c.imports(1, all, ImportResult{Items: 6, Unchanged: 4, Stale: 2}, ImportOptions{AsNew: true})
	for i, want := range []string{"new", "over", "same", "later", "put", "now"} {
		if r, err := c.spaces[3].Get(t.Context(), []byte(keys[i])); err != nil || string(r.Value) != want {
			t.Errorf("%q: %q, %v", keys[i], r.Value, err)
		}
	}
	if n := c.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// An item that one host takes stays, though another one has promised past its date.
func TestImportShardsAtOneHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	const key = "key"
	hosts, others := c.hosts(key)
	asker := c.spaces[others[0]]
	c.lies(c.nodes[hosts[1]], asker, func(*wire.Ask) wire.Answering {
		return &wire.HoldAnswer{Whole: true, Outcomes: []wire.HoldOutcome{{Declined: wire.ReasonFloor}}}
	})
	asker.node.routing.CloseIdle()
	item := Item{Key: []byte(key), Value: []byte("dated"), Time: c.nodes[0].now().Truncate(time.Millisecond)}
	c.imports(others[0], []Item{item}, ImportResult{Items: 1, Written: 1})
	if r := c.held(hosts[0], key); r == nil || string(r.Value) != "dated" || r.Version.Writer != 0 {
		t.Errorf("it holds %+v", r)
	}
}
