package peer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// watch follows a node's watch until what it has told is what is wanted.
func (c *writerCluster) watch(i int, s *shardsSeen, want map[string]string) {
	c.t.Helper()
	if err := c.routedCluster.follow(i, s, func() bool { return s.at > 0 && maps.Equal(s.values, want) }); err != nil || !maps.Equal(s.values, want) {
		c.t.Fatalf("node %d: %v, want %v: %v", i, s.values, want, err)
	}
}

// A watch by placement writer tells all that is held, and what becomes of it, also of a key that
// goes into another shard; it goes on from its cursor after its node was started again.
func TestWatchWriters(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	want := map[string]string{}
	put := func(i int, key, value string) {
		t.Helper()
		want[key] = value
		_, err := c.put(i, key, value, route.All)
		c.must(err)
	}
	for k := range 30 {
		put(k%3, fmt.Sprint("key ", k), "first")
	}
	c.follow()
	seen := make([]*shardsSeen, 3)
	for i := range c.spaces {
		seen[i] = &shardsSeen{values: map[string]string{}, last: FromStart}
		c.watch(i, seen[i], want)
	}
	put(1, "key 3", "second") // by another node, in its shard
	_, err := c.spaces[2].Delete(t.Context(), []byte("key 7"), Acks(AckAll))
	c.must(err)
	delete(want, "key 7")
	for i := range c.spaces {
		c.watch(i, seen[i], want)
	}
	_, err = c.spaces[2].Delete(t.Context(), []byte("key 9"), Acks(AckAll))
	c.must(err)
	c.follow()
	was := c.spaces[0].core.OwnShard([]byte("key 9"))
	put(1, "key 9", "moved")
	c.follow()
	if now := c.shardIn(0, "key 9"); now == was {
		t.Fatal("the key is in the same shard: the test shows nothing")
	}
	c.reopen(0)
	c.follow()
	for i := range c.spaces {
		c.watch(i, seen[i], want)
	}
}

// What a shard tells of a key that is in another one by now is told as that is, whatever was told
// before; so is a record which lost a first write that met another one.
func TestWatchWritersLate(t *testing.T) {
	c := newWriterCluster(t, 3)
	ctx := t.Context()
	key := []byte("key")
	_, err := c.put(0, "key", "first", route.All)
	c.must(err)
	c.follow()
	first := c.spaces[0].core.OwnShard(key)
	f, err := c.spaces[0].lookUp(ctx, key, false)
	c.must(err)
	put := &node.Watched{Kind: node.PutKind, Key: key, Record: f.Record}
	gone := &node.Watched{Kind: node.GoneKind, Key: key}
	for i, ns := range c.spaces {
		if e, err := newPlacing(ns).placed(ctx, first, put); err != nil || e != put {
			t.Errorf("node %d: what is there: %+v, %v", i, e, err)
		}
	}
	_, err = c.spaces[1].Delete(ctx, key, Acks(AckAll))
	c.must(err)
	c.follow()
	for i, ns := range c.spaces {
		if e, err := newPlacing(ns).placed(ctx, first, put); err != nil || e != nil {
			t.Errorf("node %d: a record that was deleted since: %+v, %v", i, e, err)
		}
		if e, err := newPlacing(ns).placed(ctx, first, gone); err != nil || e != gone {
			t.Errorf("node %d: what is gone: %+v, %v", i, e, err)
		}
	}
	two := newPlacing(c.spaces[0])
	asked, err := two.all(ctx, first, []node.Watched{*gone})
	c.must(err)
	_, err = c.put(1, "key", "moved", route.All)
	c.must(err)
	f, err = c.spaces[0].lookUp(ctx, key, false)
	c.must(err)
	moved := &node.Watched{Kind: node.PutKind, Key: key, Record: f.Record}
	later, err := two.all(ctx, f.Shard, []node.Watched{*moved})
	c.must(err)
	if e, err := two.next(ctx, f.Shard, moved, later[0]); err != nil || e == nil {
		t.Errorf("what another shard tells: %+v, %v", e, err)
	}
	if e, err := two.next(ctx, first, gone, asked[0]); err != nil || e == nil || e.Kind != node.PutKind {
		t.Errorf("gone, as was asked before another shard has told a record: %+v, %v", e, err)
	}
	if len(two.keys) > 0 {
		t.Errorf("%d keys are kept, and wait for nothing", len(two.keys))
	}
	for _, heard := range []bool{false, true} {
		for i, ns := range c.spaces {
			if e, err := newPlacing(ns).placed(ctx, first, put); err != nil || e != nil {
				t.Errorf("node %d, heard %v: a record of the shard before: %+v, %v", i, heard, e, err)
			}
			e, err := newPlacing(ns).placed(ctx, first, gone)
			if err != nil || e == nil || e.Kind != node.PutKind || string(e.Record.Value) != "moved" {
				t.Errorf("node %d, heard %v: what is gone in the shard before: %+v, %v", i, heard, e, err)
			}
		}
		c.follow()
	}
	entry := c.entered(0, &dbadapter.Record{Key: []byte("bound"), Value: []byte("v")}, first)
	for i, ns := range c.spaces {
		e := &node.Watched{Kind: node.GoneKind, Key: entry.Key}
		if got, err := newPlacing(ns).placed(ctx, first+1, e); err != nil || got != e {
			t.Errorf("node %d: gone, and the entry names a record that has not come: %+v, %v", i, got, err)
		}
	}
	hosts := c.holding("key", c.spaces[0].core.Entries(key))
	other := slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return !slices.Contains(hosts, i) })
	for _, i := range hosts {
		c.must(c.nodes[i].Close(context.Background()))
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := newPlacing(c.spaces[other]).placed(ctx, first, gone); err == nil {
		t.Error("no host of the directory answers, and something is told")
	}
}

// What is earlier than what was told of a key is told only where the key does not hold the later any
// more.
func TestWatchWritersGoesForward(t *testing.T) {
	c := newWriterCluster(t, 3)
	ctx := t.Context()
	key := []byte("key")
	in := c.spaces[0].core.OwnShard(key)
	var told []node.Watched // one after the other
	hold := func(kind node.Kind) {
		t.Helper()
		f, err := c.spaces[0].lookUpIn(ctx, in, key, true)
		c.must(err)
		told = append(told, node.Watched{Kind: kind, Key: key, Record: f.Record})
	}
	for _, value := range []string{"first", "second"} {
		_, err := c.put(0, "key", value, route.All)
		c.must(err)
		hold(node.PutKind)
	}
	c.follow()
	p := newPlacing(c.spaces[1])
	tell := func(e *node.Watched) bool {
		t.Helper()
		placed, err := p.all(ctx, in, []node.Watched{*e})
		c.must(err)
		got, err := p.next(ctx, in, e, placed[0])
		c.must(err)
		return got != nil
	}
	if !tell(&told[1]) || tell(&told[0]) || !tell(&told[1]) {
		t.Error("the second write is not told, or the first one behind it")
	}
	lost := told[1].Record.Clone()
	lost.Version.Clock++
	if !tell(&node.Watched{Kind: node.PutKind, Key: key, Record: &lost}) || !tell(&told[1]) {
		t.Error("what is held is not told behind what was lost")
	}
	_, err := c.spaces[2].Delete(ctx, key, Acks(AckAll))
	c.must(err)
	c.follow()
	hold(node.DeleteKind)
	if !tell(&told[2]) || tell(&told[1]) {
		t.Error("the deletion is not told, or what was deleted behind it")
	}
	for n := range 3 * latelyKeys {
		p.lately.note(fmt.Append(nil, n), told[0].Record.Version)
	}
	if n := len(p.lately.newer) + len(p.lately.older); n > 2*latelyKeys {
		t.Errorf("%d keys are kept", n)
	}
}

// A host of the directory that does not answer holds up no other shard of a watch, and is not awaited in
// full for each event.
func TestWatchWritersWithASilentHost(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	const keys = 40
	for k := range keys {
		_, err := c.put(k%3, fmt.Sprint("key ", k), "v", route.All)
		c.must(err)
	}
	c.follow()
	seen := &shardsSeen{values: map[string]string{}, last: FromStart}
	c.must(c.routedCluster.follow(0, seen, func() bool { return seen.at > 0 && len(seen.values) == keys }))
	for k := range keys {
		_, err := c.spaces[0].Delete(t.Context(), fmt.Append(nil, "key ", k), Acks(AckAll))
		c.must(err)
	}
	c.follow()
	c.lies(c.nodes[2], c.spaces[0], func(*wire.Ask) wire.Answering { return nil })
	c.nodes[0].routing.close() // streams of before
	if err := c.routedCluster.follow(0, seen, func() bool { return len(seen.values) == 0 }); err != nil || len(seen.values) > 0 {
		t.Errorf("%d of %d deletions are not told after a minute: %v", len(seen.values), keys, err)
	}
}
