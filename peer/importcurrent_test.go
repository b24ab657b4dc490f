package peer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// An import at a host whose copy is not current does not go by that alone: what another host has written
// meanwhile gives way to the item, whether the host answers, or is away and heard later. What all hosts hold
// is unchanged.
func TestImportAtAHostThatIsNotCurrent(t *testing.T) {
	t.Parallel()
	wanted, deleted := []Item{{Key: []byte("key"), Value: []byte("wanted")}}, []Item{{Key: []byte("key"), Deleted: true}}
	for name, tc := range map[string]struct {
		items []Item
		// What both hosts hold, and then the one that imports, and the other one; "": nothing.
		both, own, other string
		away             bool
		want             ImportResult
		ends             string
	}{
		"another value":           {items: wanted, both: "wanted", other: "other", want: ImportResult{Items: 1, Written: 1}, ends: "wanted"},
		"of a host that is away":  {items: wanted, both: "wanted", other: "other", away: true, want: ImportResult{Items: 1, Written: 1}, ends: "wanted"},
		"an older value":          {items: wanted, both: "older", own: "wanted", want: ImportResult{Items: 1, Unchanged: 1}, ends: "wanted"},
		"the same value":          {items: wanted, both: "wanted", want: ImportResult{Items: 1, Unchanged: 1}, ends: "wanted"},
		"no value":                {items: wanted, own: "wanted", want: ImportResult{Items: 1, Unchanged: 1}, ends: "wanted"},
		"deleted, and only there": {items: deleted, other: "other", want: ImportResult{Items: 1, Written: 1}},
		"deleted, and nowhere":    {items: deleted, want: ImportResult{Items: 1, Unchanged: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRoutedCluster(t, 4)
			if tc.both != "" {
				_, err := c.put(0, "key", tc.both, route.All)
				c.must(err)
			}
			hosts, _ := c.hosts("key")
			for at, value := range []string{tc.own, tc.other} {
				if value != "" {
					c.write(hosts[at], "key", value)
				}
			}
			c.now.Add(int64(time.Hour))
			if tc.away {
				c.nodes[hosts[0]].routing.slowed(c.nodes[hosts[1]].ID(), true, c.nodes[hosts[0]].elapsed())
			}
			got, err := c.spaces[hosts[0]].Import(t.Context(), sequence(tc.items))
			if err != nil || got != tc.want {
				t.Errorf("%+v, %v", got, err)
			}
			for range 3 {
				c.round()
			}
			for i := range c.nodes {
				r, err := c.spaces[i].Get(t.Context(), []byte("key"))
				if string(r.Value) != tc.ends || (err == nil) != (tc.ends != "") {
					t.Errorf("node %d reads %q, %v", i, r.Value, err)
				}
			}
		})
	}
}

// The same by placement writer, where the record's shard is this host's: what the other host has written over it
// gives way to the item, whether that host answers or not. Repeated where all hosts are heard, it is unchanged.
func TestImportWriterAtAHostThatIsNotCurrent(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"it answers": false, "it is away": true} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			wanted := []Item{{Key: []byte("key"), Value: []byte("wanted")}}
			_, err := c.put(0, "key", "wanted", route.All)
			c.must(err)
			c.follow()
			at := c.holding("key", c.spaces[0].core.OwnShard([]byte("key")))
			_, err = c.put(at[1], "key", "other", 1)
			c.must(err)
			c.now.Add(int64(time.Hour))
			c.follow()
			importer := c.nodes[at[0]]
			if away {
				importer.routing.slowed(c.nodes[at[1]].ID(), true, importer.elapsed())
			}
			got, err := c.spaces[at[0]].Import(t.Context(), sequence(wanted))
			if err != nil || got != (ImportResult{Items: 1, Written: 1}) {
				t.Errorf("%+v, %v", got, err)
			}
			for range 6 {
				c.round()
				c.follow()
			}
			c.readEverywhere("key", "wanted")
			importer.routing.slowed(c.nodes[at[1]].ID(), false, importer.elapsed())
			c.now.Add(int64(time.Hour))
			c.follow()
			if got, err = c.spaces[at[0]].Import(t.Context(), sequence(wanted)); err != nil || got != (ImportResult{Items: 1, Unchanged: 1}) {
				t.Errorf("again: %+v, %v", got, err)
			}
		})
	}
}

// A host that is not settled cannot say that it holds nothing later, nor can one that has another list of
// members: by that a further host may hold it.
func TestImportBesideAHostThatIsNotSure(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ both, otherList bool }{
		"not settled":                {both: true},
		"not settled and without it": {},
		"another list":               {both: true, otherList: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRoutedCluster(t, 4)
			hosts, _ := c.hosts("key")
			ns, other := c.spaces[hosts[0]], c.spaces[hosts[1]]
			c.write(hosts[0], "key", "wanted")
			if tc.both {
				c.current(hosts[1], hosts[0], "key")
			}
			c.now.Add(int64(time.Hour))
			if tc.otherList {
				c.lies(other.node, ns, func(ask *wire.Ask) wire.Answering {
					there := ask.Question.(*wire.AskHold).Look
					return &wire.HoldAnswer{Settled: true, Outcomes: []wire.HoldOutcome{{There: there}}}
				})
				ns.node.routing.close() // streams of before
			} else {
				c.must(other.core.MayLack())
			}
			got, err := ns.Import(t.Context(), sequence([]Item{{Key: []byte("key"), Value: []byte("wanted")}}))
			if err != nil || got != (ImportResult{Items: 1, Written: 1}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// While a further member may hold the shard, and has not said so, the word of all hosts is not enough.
func TestImportBesideAMemberThatIsNotHeard(t *testing.T) {
	t.Parallel()
	const before = 4
	c := &routedCluster{shardCluster: newShardCluster(t, 0, Config{NoPush: true})}
	c.kind = placement.Hash
	for range before {
		c.joinDrawn()
	}
	c.settle(0, 1, 2, 3)
	was := map[string][]int{}
	for i := range 40 {
		key := fmt.Sprint("key ", i)
		_, err := c.put(0, key, "value", route.All)
		c.must(err)
		was[key], _ = c.hosts(key)
	}
	for range 2 { // of the layouts between the others have not heard
		c.joinDrawn()
		_, was, err := c.spaces[0].core.Layout()
		c.must(err)
		for stated := was; stated.Epoch == was.Epoch; _, stated, err = c.spaces[0].core.Layout() {
			c.must(err)
			c.now.Add(int64(5 * time.Second))
			c.spaces[0].tend()
		}
	}
	for range 3 { // the lists, and what each of before holds; no set is synced
		for i := range before {
			for j := range before {
				if i != j {
					_, _ = c.spaces[i].sync(t.Context(), nil, c.nodes[j].ID(), SyncOptions{}) // what a member writes that is not known yet is declined
				}
			}
			c.spaces[i].tend()
		}
	}
	for key, hosts := range was {
		ns := c.spaces[hosts[1]]
		remote := ns.core.Shard(ns.core.Home([]byte(key)))
		if named, _ := remote.Hosts(); slices.ContainsFunc(hosts, func(i int) bool { return !slices.Contains(named, node.ID(c.nodes[i].ID())) }) {
			continue
		}
		if !remote.Unheard() {
			t.Fatal("it is known what the new members hold")
		}
		got, err := ns.Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("value")}}))
		if err != nil || got != (ImportResult{Items: 1, Written: 1}) {
			t.Errorf("%+v, %v", got, err)
		}
		return
	}
	t.Fatal("each key has another host now")
}
