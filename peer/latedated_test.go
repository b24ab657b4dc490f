package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// declinesDates has all hosts decline the dates that a node offers them. Of what they are asked to hold besides, hear says whether
// they answer.
func (c *routedCluster) declinesDates(asker *Namespace, hear func(*wire.AskHold) bool) {
	for _, n := range c.nodes {
		if n == asker.node {
			continue
		}
		c.lies(n, asker, func(ask *wire.Ask) wire.Answering {
			if q, ok := ask.Question.(*wire.AskHold); ok && !q.Look {
				if q.Records[0].Version.Writer == 0 {
					return &wire.HoldAnswer{Settled: true, Outcomes: []wire.HoldOutcome{{Declined: wire.ReasonFloor}}}
				}
				if !hear(q) {
					return nil
				}
			}
			return n.honest(asker, ask)
		})
	}
	asker.node.routing.close()
}

// lateRecord is the record of an item of a date that is written as of now.
func (c *routedCluster) lateRecord(remote *node.Remote, key string, date time.Time) *dbadapter.Record {
	c.t.Helper()
	record, err := remote.Make(node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte("late")}, Late: date})
	c.must(err)
	return record
}

// brings has one host hold a record, whatever it holds.
func (c *routedCluster) brings(ns *Namespace, remote *node.Remote, host ID, r *dbadapter.Record) {
	c.t.Helper()
	if o, _, err := ns.offerTo(c.t.Context(), remote, host, r, route.Manner{Insists: true}); err != nil || !o.Held {
		c.t.Fatalf("%+v, %v", o, err)
	}
}

// A dated item, whose date is later than that of a late one and is taken, comes to the hosts after those have declined the late one's
// date and before its record of now: it stands.
func TestDatedItemBeforeALateItemsRecord(t *testing.T) {
	t.Parallel()
	for _, kind := range []placement.Kind{placement.Hash, placement.Writer} {
		for _, deletes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, a deletion %t", kind, deletes), func(t *testing.T) {
				t.Parallel()
				w := newLocatedCluster(t, 4, kind)
				c := w.routedCluster
				name := "key"
				var hosts []int
				if kind == placement.Writer {
					name, _, hosts, _ = w.onTwo()
				} else {
					_, err := c.put(0, name, "first", route.All)
					c.must(err)
					hosts, _ = c.hosts(name)
				}
				key := []byte(name)
				date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
				c.now.Add(int64(2 * time.Minute))
				c.round()
				w.follow()
				var others []*Namespace // which ask hosts for all
				for i, ns := range c.spaces {
					if !slices.Contains(hosts, i) {
						others = append(others, ns)
					}
				}
				importer, other := others[0], others[1]
				later := Item{Key: key, Value: []byte("later"), Time: date.Add(time.Minute)}
				if deletes {
					later.Value, later.Deleted = nil, true
				}
				var begun, ended atomic.Bool
				c.declinesDates(importer, func(*wire.AskHold) bool { // its record of now
					if begun.CompareAndSwap(false, true) {
						for _, n := range c.nodes {
							c.serves(n)
						}
						got, err := other.Import(t.Context(), sequence([]Item{later}), Acks(AckAll))
						if err != nil || got.Written != 1 {
							t.Errorf("the later one: %+v, %v", got, err)
						}
						ended.Store(true)
					}
					return true
				})
				got, err := importer.Import(t.Context(), sequence([]Item{{Key: key, Value: []byte("late"), Time: date}}))
				if err != nil || got != (ImportResult{Items: 1, Stale: 1}) || !ended.Load() {
					t.Errorf("the late one: %+v, %v; the other was there: %t", got, err, ended.Load())
				}
				for range 3 {
					c.round()
					w.follow()
				}
				for i, ns := range c.spaces {
					ns.node.routing.close()
					r, err := ns.Get(t.Context(), key)
					if deletes != (errors.Is(err, ErrDeleted) || errors.Is(err, ErrNotFound)) || !deletes && string(r.Value) != "later" {
						t.Errorf("node %d reads %q, %v", i, r.Value, err)
					}
				}
			})
		}
	}
}

// A dated item behind a late one whose record is in another shard than the item's own would go to takes its place, whether or not
// the importer's locator has heard of the key.
func TestDatedItemBehindALateItemElsewhere(t *testing.T) {
	t.Parallel()
	for _, deletes := range []bool{false, true} {
		t.Run(fmt.Sprintf("a deletion %t", deletes), func(t *testing.T) {
			c := newWriterCluster(t, 4)
			date := c.nodes[0].now().Truncate(time.Millisecond)
			c.now.Add(int64(2 * time.Minute))
			c.round()
			c.follow()
			c.declinesDates(c.spaces[0], func(*wire.AskHold) bool { return true })
			var first, second []Item
			for i := range 12 {
				key := fmt.Append(nil, "new ", i)
				first = append(first, Item{Key: key, Value: []byte("late"), Time: date})
				second = append(second, Item{Key: key, Value: []byte("later"), Time: date.Add(time.Minute)})
				if deletes {
					second[i].Value, second[i].Deleted = nil, true
				}
			}
			for i := range first { // one by one: the hooks answer questions of one record
				if got, err := c.spaces[0].Import(t.Context(), sequence(first[i:i+1]), Acks(AckAll)); err != nil || got.Late+got.Written < 1 {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			for _, n := range c.nodes {
				c.serves(n)
			}
			if got, err := c.spaces[1].Import(t.Context(), sequence(second), Acks(AckAll)); err != nil || got.Written != 12 {
				t.Errorf("behind them: %+v, %v", got, err)
			}
			for range 3 {
				c.meet()
			}
			for i := range c.nodes {
				for _, item := range first {
					got, err := c.get(i, string(item.Key))
					if deletes != (errors.Is(err, ErrDeleted) || errors.Is(err, ErrNotFound)) || !deletes && got != "later" {
						t.Errorf("node %d reads %q of %s, %v", i, got, item.Key, err)
					}
				}
			}
		})
	}
}

// Where the two meet by a sync alone, the record of now stands, and the dated one is a listed conflict where it is the later one.
func TestLateItemMeetsADatedOne(t *testing.T) {
	t.Parallel()
	for _, later := range []bool{true, false} {
		t.Run(fmt.Sprintf("later %t", later), func(t *testing.T) {
			t.Parallel()
			c := newRoutedCluster(t, 4)
			hosts, others := c.hosts("key")
			ns := c.spaces[others[0]]
			date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
			item := Item{Key: []byte("key"), Value: []byte("dated"), Time: date.Add(time.Second)}
			if !later {
				item.Time = date.Add(-time.Second)
			}
			c.now.Add(int64(2 * time.Minute))
			serve := c.silences(hosts[1], ns)
			c.nearest(ns, hosts[0], hosts[1])
			if got, err := ns.Import(t.Context(), sequence([]Item{item})); err != nil || got.Written != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			serve()
			remote, err := ns.core.Remote([]byte("key"))
			c.must(err)
			c.brings(ns, remote, c.nodes[hosts[1]].ID(), c.lateRecord(remote, "key", date))
			if later { // one that is dated between the two: a host holds what is later, with an earlier version
				between := Item{Key: []byte("key"), Value: []byte("between"), Time: date.Add(500 * time.Millisecond)}
				if got, err := ns.Import(t.Context(), sequence([]Item{between}), Acks(AckAll)); err != nil || got != (ImportResult{Items: 1, Stale: 1}) {
					t.Errorf("an item dated between the two: %+v, %v", got, err)
				}
			}
			for range 2 {
				c.round()
			}
			for _, i := range hosts {
				if r := c.held(i, "key"); r == nil || string(r.Value) != "late" {
					t.Errorf("host %d holds %+v", i, r)
				}
			}
			if n := c.conflicts(); n > 0 != later {
				t.Errorf("%d conflicts", n)
			}
		})
	}
}

// A dated item over a late one that is dated before it, at the only host of its shard: its date is taken, and would not stand. The
// items beside it are imported, too.
func TestDatedItemOverALateOneAtItsOnlyHost(t *testing.T) {
	t.Parallel()
	c := newReplicatedCluster(t, placement.Hash, 1, 1, Config{NoPush: true})
	ns := c.spaces[0]
	date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
	c.now.Add(int64(2 * time.Minute))
	remote, err := ns.core.Remote([]byte("key 5"))
	c.must(err)
	c.brings(ns, remote, ns.node.ID(), c.lateRecord(remote, "key 5", date))
	var items []Item
	for i := range 40 {
		items = append(items, Item{Key: fmt.Append(nil, "key ", i), Value: []byte("later"), Time: date.Add(time.Second)})
	}
	for _, want := range []ImportResult{{Items: 40, Written: 40, Late: 1}, {Items: 40, Unchanged: 40}} {
		if got, err := ns.Import(t.Context(), sequence(items)); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	for _, item := range items {
		if r := c.held(0, string(item.Key)); r == nil || string(r.Value) != "later" {
			t.Errorf("of %s it holds %+v", item.Key, r)
		}
	}
}

// So by placement writer, where the two are in different shards.
func TestLateItemMeetsADatedOneElsewhere(t *testing.T) {
	t.Parallel()
	for _, later := range []bool{true, false} {
		t.Run(fmt.Sprintf("later %t", later), func(t *testing.T) {
			t.Parallel()
			c := newWriterCluster(t, 4)
			ns, key := c.spaces[0], ""
			for i := 0; key == "" || ns.core.OwnShard([]byte(key)) == ns.core.Home([]byte(key)); i++ {
				key = fmt.Sprint("apart ", i)
			}
			date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
			item := Item{Key: []byte(key), Value: []byte("dated"), Time: date.Add(time.Second)}
			if !later {
				item.Time = date.Add(-time.Second)
			}
			c.now.Add(int64(2 * time.Minute))
			if got, err := ns.Import(t.Context(), sequence([]Item{item}), Acks(AckAll)); err != nil || got.Written != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			own, entries := ns.core.RemoteIn([]byte(key), ns.core.OwnShard([]byte(key))), ns.core.RemoteIn([]byte(key), ns.core.Entries([]byte(key)))
			record := c.lateRecord(own, key, date)
			entry, err := entries.Entry(record, own.Shard())
			c.must(err)
			for remote, r := range map[*node.Remote]*dbadapter.Record{own: record, entries: entry} {
				hosts, err := remote.Hosts()
				c.must(err)
				c.brings(ns, remote, ID(hosts[0]), r)
			}
			for range 3 {
				c.pass(node.AbsentFor)
				c.meet()
			}
			c.readEverywhere(key, "late")
			listed := c.conflicts(key)
			for i, values := range listed {
				if !slices.Equal(values, []string{"dated"}) {
					t.Errorf("node %d lists %q", i, values)
				}
			}
			if len(listed) > 0 != later {
				t.Errorf("listed at %v", listed)
			}
		})
	}
}

// A late item whose entry was taken and whose record was not is written by the next import of it.
func TestLateItemWhoseRecordIsMissing(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	name, ns, _, _ := c.onTwo()
	key := []byte(name)
	c.now.Add(int64(time.Second))
	date := c.nodes[0].now().Truncate(time.Millisecond)
	c.now.Add(int64(2 * time.Minute))
	c.round()
	c.follow()
	var away atomic.Bool
	away.Store(true)
	entries, records := atomic.Int64{}, atomic.Int64{}
	c.declinesDates(ns, func(q *wire.AskHold) bool {
		if placement.Shard(q.Shard) == ns.core.Entries(key) {
			entries.Add(1)
			return true
		}
		records.Add(1)
		return !away.Load()
	})
	items := []Item{{Key: key, Value: []byte("late"), Time: date}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if got, err := ns.Import(ctx, sequence(items)); err == nil || entries.Load() == 0 || records.Load() == 0 {
		t.Fatalf("%+v, %v; %d entries and %d records were offered", got, err, entries.Load(), records.Load())
	}
	away.Store(false)
	ns.node.routing.close()
	c.pass(node.EntryPatience)
	c.follow()
	for i, at := range []*Namespace{ns, c.spaces[(slices.Index(c.spaces, ns)+1)%4]} {
		if i == 1 {
			for _, n := range c.nodes {
				c.serves(n)
			}
			c.meet()
		}
		got, err := at.Import(t.Context(), sequence(items))
		if want := (ImportResult{Items: 1, Written: 1, Late: 1}); err != nil || i == 0 && got != want || i == 1 && got.Written != 0 {
			t.Errorf("import %d: %+v, %v", i, got, err)
		}
	}
	for range 3 {
		c.meet()
	}
	c.readEverywhere(name, "late")
}
