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

// away has imports at a node do without a host where another one is enough.
func (c *routedCluster) away(asker *Namespace, host int) {
	asker.node.routing.slowed(c.nodes[host].ID(), true, asker.node.elapsed())
}

// importsTo imports an item at a node, which comes to this, and is what each node reads once all have met and answer.
func (c *routedCluster) importsTo(want ImportResult, ns *Namespace, item Item) {
	c.t.Helper()
	got, err := ns.Import(c.t.Context(), sequence([]Item{item}))
	if err != nil || got != want {
		c.t.Errorf("%+v, %v", got, err)
	}
	for _, n := range c.nodes {
		c.serves(n)
	}
	ns.node.routing.close()
	for range 3 {
		c.round()
	}
	for i, ns := range c.spaces {
		if r, err := ns.Get(c.t.Context(), item.Key); string(r.Value) != string(item.Value) || (err != nil) != item.Deleted {
			c.t.Errorf("node %d reads %q, %v", i, r.Value, err)
		}
	}
}

// An import at a node that is no host, or is not settled, does not call an item unchanged on the word of one host
// while another node, which is not heard, may hold what was acknowledged later. What all that may hold it hold is
// unchanged.
func TestImportElsewhereIsUnchangedByAllHosts(t *testing.T) {
	t.Parallel()
	unsettled := func(c *routedCluster, host int) { c.must(c.spaces[host].core.MayLack()) }
	for name, tc := range map[string]struct {
		// before is what happens to the first host, by which the item is there, and to the other one.
		before    func(c *routedCluster, asker *Namespace, first, other int)
		heard     bool // the other one
		there     bool // the other one imports
		unchanged bool
	}{
		"stale": {before: func(c *routedCluster, _ *Namespace, _, other int) {
			c.write(other, "key", "other")
			c.now.Add(int64(time.Hour))
		}},
		"not settled": {before: func(c *routedCluster, _ *Namespace, first, other int) {
			c.write(other, "key", "other")
			unsettled(c, first)
		}},
		"behind the node's own write": {before: func(c *routedCluster, asker *Namespace, first, _ int) {
			defer c.silences(first, asker)()
			_, err := asker.Put(t.Context(), []byte("key"), []byte("other"))
			c.must(err)
		}},
		"this node holds another, and is not settled": {there: true, before: func(c *routedCluster, _ *Namespace, _, other int) {
			c.write(other, "key", "other")
			unsettled(c, other)
		}},
		"both hold it, and one has another list": {heard: true, before: func(c *routedCluster, asker *Namespace, _, other int) {
			c.lies(c.nodes[other], asker, saysThere)
			asker.node.routing.close()
		}},
		"both hold it, and one is not settled": {heard: true, before: func(c *routedCluster, _ *Namespace, first, _ int) { unsettled(c, first) }},
		"both hold it":                         {heard: true, unchanged: true, before: func(*routedCluster, *Namespace, int, int) {}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, importer, hosts := newBothCurrent(t)
			tc.before(c, importer, hosts[0], hosts[1])
			c.now.Add(int64(time.Second))
			if !tc.heard {
				c.away(importer, hosts[1])
			}
			if tc.there {
				importer = c.spaces[hosts[1]]
			}
			want := ImportResult{Items: 1, Written: 1}
			if tc.unchanged {
				want = ImportResult{Items: 1, Unchanged: 1}
			}
			c.importsTo(want, importer, Item{Key: []byte("key"), Value: []byte("first")})
		})
	}
}

// saysThere is the answer of a host that is settled and holds what it is asked about, by no list of members.
func saysThere(ask *wire.Ask) wire.Answering {
	q := ask.Question.(*wire.AskHold)
	return &wire.HoldAnswer{Settled: true, Outcomes: []wire.HoldOutcome{{There: q.New || q.Look}}}
}

// A record that a host takes, and that is made anew as another host holds a later one, counts no more: where that host
// is not heard again, the first one has to hold the new one.
func TestImportMadeAnewIsHeld(t *testing.T) {
	c, _, asker, hosts := newBothCurrent(t)
	key := c.beside(asker, "key") // which holds nothing
	later := dbadapter.Version{Clock: dbadapter.TimestampAt(c.base.Clock().Add(10 * time.Second)), Writer: 1, Incarnation: 1}
	var asked atomic.Int64
	c.lies(c.nodes[hosts[1]], asker, func(*wire.Ask) wire.Answering {
		if asked.Add(1) > 1 {
			return &wire.HoldAnswer{Settled: true, Outcomes: []wire.HoldOutcome{{Declined: wire.ReasonFloor}}}
		}
		for range 1000 { // the other host takes the first record before
			if c.held(hosts[0], key) != nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		return &wire.HoldAnswer{Settled: true, Outcomes: []wire.HoldOutcome{{Other: &dbadapter.Record{Version: later}}}}
	})
	asker.node.routing.close()
	got, err := asker.Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("value")}}))
	if err != nil || got != (ImportResult{Items: 1, Written: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	if r := c.held(hosts[0], key); string(r.Value) != "value" || r.Version.Compare(later) < 0 {
		t.Errorf("it holds %+v", r)
	}
}

// An import right after a write of the same node has seen that: it deletes what a host that is current has not heard
// of yet, and lists no conflict where that one takes the item.
func TestImportAfterTheOwnWrite(t *testing.T) {
	t.Parallel()
	for name, item := range map[string]Item{"put": {Value: []byte("third")}, "deleted": {Deleted: true}} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", first ", first), func(t *testing.T) {
				c, before, asker, hosts := newBothCurrent(t)
				serve := c.silences(hosts[1], asker)
				var err error
				if item.Key = []byte("key"); first {
					item.Key = []byte(c.beside(asker, "key"))
					_, err = asker.Put(t.Context(), item.Key, []byte("second"))
				} else {
					_, err = asker.PutIf(t.Context(), item.Key, []byte("second"), before.Version, Acks(1))
				}
				c.must(err)
				serve()
				c.away(asker, hosts[0])
				c.nearest(asker, hosts[1], hosts[0])
				c.importsTo(ImportResult{Items: 1, Written: 1}, asker, item)
				if n := c.conflicts(); n != 0 {
					t.Errorf("%d conflicts", n)
				}
			})
		}
	}
}

// The same by placement writer, for a record, and for a deletion where one host of the directory has no entry yet.
func TestImportWriterElsewhereIsUnchangedByAllHosts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		later, heard bool // a later value that the other host holds, and is that heard
		want         ImportResult
	}{
		"a later value":  {later: true, want: ImportResult{Items: 1, Written: 1}},
		"the same value": {heard: true, want: ImportResult{Items: 1, Unchanged: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			_, err := c.put(0, "key", "wanted", route.All)
			c.must(err)
			c.follow()
			hosts := c.holding("key", c.spaces[0].core.OwnShard([]byte("key")))
			importer := c.spaces[slices.IndexFunc(c.nodes, func(n *Node) bool { return n != c.nodes[hosts[0]] && n != c.nodes[hosts[1]] })]
			if tc.later {
				_, err = c.put(hosts[1], "key", "other", 1)
				c.must(err)
				c.now.Add(int64(time.Second))
			}
			c.follow()
			if !tc.heard {
				c.away(importer, hosts[1])
			}
			got, err := importer.Import(t.Context(), sequence([]Item{{Key: []byte("key"), Value: []byte("wanted")}}))
			if err != nil || got != tc.want {
				t.Errorf("%+v, %v", got, err)
			}
			for range 6 {
				c.round()
				c.follow()
			}
			c.readEverywhere("key", "wanted")
		})
	}
	t.Run("deleted", func(t *testing.T) {
		c := newWriterCluster(t, 4)
		hosts := c.holding("key", c.spaces[0].core.Entries([]byte("key")))
		importer := c.spaces[slices.IndexFunc(c.nodes, func(n *Node) bool { return n != c.nodes[hosts[0]] && n != c.nodes[hosts[1]] })]
		serve := c.silences(hosts[0], importer)
		_, err := importer.Put(t.Context(), []byte("key"), []byte("value"))
		c.must(err)
		serve()
		c.away(importer, hosts[1])
		got, err := importer.Import(t.Context(), sequence([]Item{{Key: []byte("key"), Deleted: true}}))
		if err != nil || got != (ImportResult{Items: 1, Written: 1}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// What hosts of which one is not heard hold already is written over it many keys in a message: none is looked up.
func TestImportWriterElsewhereInBulk(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	items := shardItems(0, 100, "v")
	for i := range items {
		items[i].Time = time.Time{}
	}
	_, err := c.spaces[0].Import(t.Context(), sequence(items), Acks(AckAll))
	c.must(err)
	c.follow()
	c.away(c.spaces[1], 0)
	before := c.counted(1, "syncd_routed_requests_total", "read")
	got, err := c.spaces[1].Import(t.Context(), sequence(items))
	if err != nil || got != (ImportResult{Items: 100, Written: 100}) {
		t.Errorf("%+v, %v", got, err)
	}
	if n := c.counted(1, "syncd_routed_requests_total", "read") - before; n > 0 {
		t.Errorf("%d keys are looked up", n)
	}
}

// What an import has written is a write of its node: where the host that is asked has not heard of it, a read asks the
// others, and a condition on the version before does not hold.
func TestImportIsAnOwnWrite(t *testing.T) {
	t.Parallel()
	for _, kind := range []placement.Kind{placement.Hash, placement.Writer} {
		t.Run(kind.String(), func(t *testing.T) {
			var c *routedCluster
			var asker *Namespace
			var hosts []int
			var first offered
			key := "key"
			if kind == placement.Hash {
				c, first, asker, hosts = newBothCurrent(t)
			} else {
				w := newWriterCluster(t, 4)
				key, asker, hosts, first = w.onTwo()
				c = w.routedCluster
			}
			serve := c.silences(hosts[0], asker)
			got, err := asker.Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("second")}}))
			if err != nil || got != (ImportResult{Items: 1, Written: 1}) {
				t.Fatalf("%+v, %v", got, err)
			}
			serve()
			c.nearest(asker, hosts[0], hosts[1])
			if r, err := asker.Get(t.Context(), []byte(key)); err != nil || string(r.Value) != "second" {
				t.Errorf("it reads %q, %v", r.Value, err)
			}
			serve = c.silences(hosts[1], asker)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := asker.PutIf(ctx, []byte(key), []byte("third"), first.Version, Acks(1)); err == nil || errors.Is(err, ErrUnconfirmed) {
				t.Errorf("on the version before: %v", err)
			}
			serve()
		})
	}
}

// Of an import of which each host is heard nothing is remembered, whether it has written or not.
func TestImportIsForgotten(t *testing.T) {
	_, _, asker, _ := newBothCurrent(t)
	for _, want := range []ImportResult{{Items: 1, Written: 1}, {Items: 1, Unchanged: 1}} {
		got, err := asker.Import(t.Context(), sequence([]Item{{Key: []byte("key"), Value: []byte("second")}}))
		if err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
		if asker.core.Recall([]byte("key"), asker.steady()).Own != nil {
			t.Errorf("%+v is remembered", want)
		}
	}
}

// Where hosts have no room for an item's record, the node's own write of before is remembered still.
func TestImportLeavesTheOwnWriteRemembered(t *testing.T) {
	t.Parallel()
	c, _, asker, hosts := newBothCurrent(t)
	c.silences(hosts[0], asker)
	own, err := asker.Put(t.Context(), []byte("key"), []byte("own"))
	c.must(err)
	remote, err := asker.core.Remote([]byte("key"))
	c.must(err)
	im := &shardImport{ns: asker}
	item := &imported{Item: node.Item{Key: []byte("key"), Value: []byte("imported")}}
	c.must(im.make(remote, []*imported{item}))
	recall := func() dbadapter.Version { return asker.core.Recall([]byte("key"), asker.steady()).Own.Version }
	if got := recall(); got != item.record.Version || !item.record.Supersedes(own) {
		t.Errorf("%v is remembered of %v over %v", got, item.record, own)
	}
	item.full = true
	im.unwritten(remote, item)
	if got := recall(); got != own {
		t.Errorf("%v is remembered, not %v", got, own)
	}
}
