package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/routing"
	"github.com/syncd-io/syncd/peer/status"
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

// A wait for a key ends once all hosts of its shard hold it, at whatever node it begins; the
// one that lacks it is given it, and the later version counts. A wait for everything is for
// the hosts of what the node holds.
func TestWaitShards(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	hosts, others := c.hosts("key")
	old := c.write(hosts[0], "key", "old")
	v := c.write(hosts[0], "key", "value")
	asker := c.spaces[others[0]]
	for _, version := range []dbadapter.Version{old, v, {}} {
		got, err := asker.Wait(t.Context(), WaitOptions{Key: []byte("key"), Version: version})
		if err != nil || len(got.Held) != 2 || len(got.Missing) != 0 {
			t.Fatalf("%s: %+v, %v", version, got, err)
		}
	}
	if r := c.held(hosts[1], "key"); r == nil || r.Version != v {
		t.Fatalf("the other host holds %+v", r)
	}
	for name, o := range map[string]WaitOptions{
		"for three of two hosts":    {Key: []byte("key"), Count: 3},
		"for one that is no host":   {Key: []byte("key"), Peers: []ID{c.nodes[others[1]].ID()}},
		"of all, for so many hosts": {Count: 4},
	} {
		at := asker
		if o.Key == nil {
			at = c.spaces[hosts[0]]
		}
		if _, err := at.Wait(t.Context(), o); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := asker.Wait(t.Context(), WaitOptions{Key: []byte("none")}); !errors.Is(err, ErrNotFound) {
		t.Errorf("for nothing: %v", err)
	}
	c.write(hosts[0], "key", "third")
	if got, err := c.spaces[hosts[0]].Wait(t.Context(), WaitOptions{}); err != nil || len(got.Held) == 0 || len(got.Missing) != 0 {
		t.Errorf("for everything: %+v, %v", got, err)
	}
	if r := c.held(hosts[1], "key"); r == nil || string(r.Value) != "third" {
		t.Errorf("the other host holds %+v", r)
	}
	v = c.write(hosts[0], "key", "fourth")
	c.must(c.nodes[hosts[1]].Close(context.Background()))
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, err := asker.Wait(soon, WaitOptions{Key: []byte("key"), Version: v, Count: 2})
	if !errors.Is(err, ErrUnconfirmed) || len(got.Held) > 1 || len(got.Missing) == 0 {
		t.Errorf("a host is away: %+v, %v", got, err)
	}
}

// shardsSeen is what a watch over shards has told.
type shardsSeen struct {
	values map[string]string // of the keys that are there
	last   Cursor
	at     int // events of EventAt
}

// follow watches until enough says so.
func (c *routedCluster) follow(i int, s *shardsSeen, enough func() bool) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
	defer cancel()
	for e, err := range c.spaces[i].Watch(ctx, s.last) {
		if err != nil {
			return err
		}
		s.last = e.Cursor
		switch e.Kind {
		case EventPut:
			s.values[string(e.Key)] = string(e.Record.Value)
		case EventAt:
			s.at++
		default:
			delete(s.values, string(e.Key))
		}
		if enough() {
			return nil
		}
	}
	return nil
}

// A watch at any node tells all that is held, and then what becomes of it, at whatever node
// that is written; it goes on from its cursor after its node and a host were started again.
func TestWatchShards(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 3)
	want := map[string]string{}
	put := func(i int, key, value string) {
		t.Helper()
		want[key] = value
		_, err := c.put(i, key, value, All)
		c.must(err)
	}
	for i := range 60 {
		put(i%3, fmt.Sprint("key ", i), "first")
	}
	for i := range c.spaces {
		s := &shardsSeen{values: map[string]string{}, last: FromStart}
		if err := c.follow(i, s, func() bool { return s.at > 0 }); err != nil || !maps.Equal(s.values, want) || s.at != 1 {
			t.Fatalf("node %d: %d of %d keys, %v", i, len(s.values), len(want), err)
		}
	}
	now, err := c.spaces[0].Cursor()
	c.must(err)
	s := &shardsSeen{values: maps.Clone(want), last: now}
	same := func() bool { return maps.Equal(s.values, want) }
	for i := range 20 {
		put(i%3, fmt.Sprint("key ", i), "second")
	}
	put(2, "last", "x")
	c.must(c.follow(0, s, same))
	c.reopen(1)
	c.reopen(0)
	for i := range 20 {
		put(i%3, fmt.Sprint("key ", 2*i), "third")
	}
	_, err = c.spaces[1].Delete(t.Context(), []byte("key 7"), Ack(All))
	c.must(err)
	delete(want, "key 7")
	c.must(c.follow(0, s, same))
	for _, bad := range []Cursor{"s1,start", "s2", Cursor(fmt.Sprint("s1", ",start,start,start,start,start,start,start,x")), "0000000000000001.5"} {
		for _, err := range c.spaces[0].Watch(t.Context(), bad) {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%q: %v", bad, err)
			}
			break
		}
	}
}

// asked is what a node is told of all members, by the numbers of their nodes.
func (c *routedCluster) asked(i int) map[int]status.ClusterMember {
	c.t.Helper()
	all, err := c.spaces[i].Cluster(c.t.Context())
	c.must(err)
	by := map[int]status.ClusterMember{}
	for _, m := range all {
		by[slices.IndexFunc(c.nodes, func(n *Node) bool { return n.ID() == m.ID })] = m
	}
	return by
}

// A node tells of each member what it holds of each shard, beside the others that hold the shard:
// of shards that it does not hold itself, too, and of members that hold none.
func TestClusterShards(t *testing.T) {
	t.Parallel()
	for _, kind := range []placement.Kind{placement.Hash, placement.Prefix} {
		t.Run(kind.String(), func(t *testing.T) {
			c := newClusterOf(t, kind, 5, Config{NoPush: true})
			ticket, err := c.spaces[0].Invite(t.Context(), InviteOptions{Role: RoleRead})
			c.must(err)
			config := c.base
			config.Dir, config.Registerer = t.TempDir(), nil
			reader := openForTest(t, config)
			ns, err := reader.Join(t.Context(), ticket)
			c.must(err)
			c.nodes, c.spaces = append(c.nodes, reader), append(c.spaces, ns)
			c.round()
			for k := range 40 {
				_, err := c.put(k%5, fmt.Sprint("key ", k), "v", All)
				c.must(err)
			}
			for _, asker := range []int{0, 3, 5} {
				records := int64(0)
				for i, m := range c.asked(asker) {
					sets := len(c.spaces[i].shards())
					if m.Problem != nil || !m.Equal || m.Missing != 0 || m.Self != (i == asker) || !m.SameList || len(m.Shards) != sets {
						t.Errorf("node %d says of %d, which holds %d sets: %+v", asker, i, sets, m)
					}
					for _, s := range m.Shards {
						if !s.Equal || s.Copies != 2 || !s.Host || s.Problem != nil {
							t.Errorf("node %d says of %d: %+v", asker, i, s)
						}
						records += s.Records
					}
				}
				if records != 2*40 {
					t.Errorf("node %d says that %d copies of 40 records are held", asker, records)
				}
			}
		})
	}
}

// A shard whose hosts hold different records differs at both. Where a host is away, what the
// other one holds is not called equal.
func TestClusterShardsDiffer(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	for k := range 20 {
		_, err := c.put(k%5, fmt.Sprint("key ", k), "v", All)
		c.must(err)
	}
	hosts, others := c.hosts("alone")
	number := int(c.spaces[0].core.Home([]byte("alone")))
	c.now.Add(int64(time.Minute))
	c.write(hosts[0], "alone", "v")
	for _, asker := range []int{hosts[0], hosts[1], others[0]} {
		for i, m := range c.asked(asker) {
			host := slices.Contains(hosts, i)
			behind := i == hosts[1]
			if m.Problem != nil || m.Equal == host || m.Missing > 0 != behind || m.Behind > 0 != behind {
				t.Errorf("node %d says of %d: %+v", asker, i, m)
			}
			for _, s := range m.Shards {
				copies, missing := 2, int64(0)
				if s.Number == number {
					copies = 1
				}
				if s.Number == number && behind {
					missing = 1
				}
				if s.Equal != (copies == 2) || s.Copies != copies || s.Missing != missing {
					t.Errorf("node %d says of %d: %+v", asker, i, s)
				}
			}
		}
	}
	c.must(c.nodes[hosts[1]].Close(t.Context()))
	all := c.asked(others[0])
	if away := all[hosts[1]]; !errors.Is(away.Problem, ErrUnreachable) || away.Equal || len(away.Shards) == 0 || slices.ContainsFunc(away.Shards, func(s status.MemberShard) bool { return s.Problem == nil || s.Equal || s.Copies > 0 }) {
		t.Errorf("a member that is away: %+v", away)
	}
	if m := all[hosts[0]]; m.Problem != nil || m.Equal || m.Missing != 0 {
		t.Errorf("a member whose shard has its other host away: %+v", m)
	}
}
