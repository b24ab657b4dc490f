package peer

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// An item with a date that a host declines, as it has promised to hold all up to later, is written as of now, but does not take the
// place of a later put that another host alone holds, as one that it has seen.
func TestLateItemBesideAPut(t *testing.T) {
	t.Parallel()
	for name, ack := range map[string]Ack{"one": 1, "all": AckAll, "one, its own": 1} {
		t.Run("hash, "+name, func(t *testing.T) {
			t.Parallel()
			c := newRoutedCluster(t, 4)
			_, err := c.put(0, "key", "first", route.All)
			c.must(err)
			date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
			c.now.Add(int64(2 * time.Minute))
			c.round()
			hosts, others := c.hosts("key")
			author, importer := c.spaces[others[0]], c.spaces[others[1]]
			if strings.HasSuffix(name, "own") {
				author = importer
			}
			c.hears(c.nodes[hosts[1]], func(by ID, ask *wire.Ask) bool {
				_, ok := ask.Question.(*wire.AskHold)
				return !ok || by != author.node.ID()
			})
			author.node.routing.close()
			_, err = author.Put(t.Context(), []byte("key"), []byte("put"))
			c.must(err)
			importer.node.routing.close()
			declined := c.promises(hosts[1], importer)
			if got, err := importer.Import(t.Context(), sequence([]Item{{Key: []byte("key"), Value: []byte("dated"), Time: date}}), Acks(ack)); err != nil || got != (ImportResult{Items: 1, Stale: 1}) || declined.Load() == 0 {
				t.Errorf("%+v, %v, after %d were declined", got, err, declined.Load())
			}
			c.serves(c.nodes[hosts[1]])
			for range 3 {
				c.round()
			}
			for i := range c.nodes {
				if r, err := c.spaces[i].Get(t.Context(), []byte("key")); err != nil || string(r.Value) != "put" {
					t.Errorf("node %d reads %q, %v", i, r.Value, err)
				}
			}
		})
		t.Run("writer, "+name, func(t *testing.T) {
			t.Parallel()
			c := newWriterCluster(t, 4)
			key, _, hosts, _ := c.onTwo()
			shard, _ := c.recordAt(hosts[0], key)
			entries := c.spaces[0].core.Entries([]byte(key))
			date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
			c.now.Add(int64(2 * time.Minute))
			c.round()
			c.follow()
			var rest []int
			for i := range c.nodes {
				if !slices.Contains(hosts, i) {
					rest = append(rest, i)
				}
			}
			author, importer := c.spaces[rest[0]], c.spaces[rest[1]]
			if strings.HasSuffix(name, "own") {
				author = importer
			}
			for i, n := range c.nodes {
				c.hears(n, func(by ID, ask *wire.Ask) bool {
					q, ok := ask.Question.(*wire.AskHold)
					return !ok || q.Look || by != author.node.ID() || i != hosts[1] || placement.Shard(q.Shard) != shard && placement.Shard(q.Shard) != entries
				})
			}
			author.node.routing.close()
			_, err := author.Put(t.Context(), []byte(key), []byte("put"))
			c.must(err)
			importer.node.routing.close()
			declined := c.promisesOf(hosts[1], importer, func(in placement.Shard) bool { return in == entries })
			if got, err := importer.Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("dated"), Time: date}}), Acks(ack)); err != nil || got != (ImportResult{Items: 1, Stale: 1}) || declined.Load() == 0 {
				t.Errorf("%+v, %v, after %d were declined", got, err, declined.Load())
			}
			for _, n := range c.nodes {
				c.serves(n)
			}
			for range 3 {
				c.meet()
			}
			for i := range c.nodes {
				if got, err := c.get(i, key); err != nil || got != "put" {
					t.Errorf("node %d reads %q, %v", i, got, err)
				}
			}
		})
	}
}

// As a host, while a write on a condition of its own, which is later than the date, is on its way: another host has taken that.
func TestLateItemBesideTheOwnCondition(t *testing.T) {
	t.Parallel()
	for name, deletes := range map[string]bool{"put": false, "delete": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newReplicatedCluster(t, placement.Hash, 4, 3, Config{NoPush: true})
			_, err := c.put(0, "key", "first", route.All)
			c.must(err)
			date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
			c.now.Add(int64(2 * time.Minute))
			c.promisesAll("key")
			remote, err := c.spaces[0].core.Remote([]byte("key"))
			c.must(err)
			named, err := remote.Hosts() // a condition has them asked in this order
			c.must(err)
			var hosts []int
			for _, id := range named {
				hosts = append(hosts, slices.IndexFunc(c.nodes, func(n *Node) bool { return node.ID(n.ID()) == id }))
			}
			ns, held := c.spaces[hosts[1]], c.held(hosts[1], "key")
			var got ImportResult
			var imported error
			began, ended := false, make(chan bool)
			c.hears(c.nodes[hosts[0]], func(by ID, ask *wire.Ask) bool {
				if q, ok := ask.Question.(*wire.AskHold); ok && by == ns.node.ID() && q.Condition && !began {
					began = true
					go func() {
						defer close(ended)
						got, imported = ns.Import(t.Context(), sequence([]Item{{Key: []byte("key"), Value: []byte("dated"), Time: date}}))
					}()
				}
				return true
			})
			ns.node.routing.close()
			if deletes {
				_, err = ns.DeleteIf(t.Context(), []byte("key"), held.Version)
			} else {
				_, err = ns.PutIf(t.Context(), []byte("key"), []byte("put"), held.Version)
			}
			if !began {
				t.Fatal("no import began: this test shows nothing")
			}
			<-ended
			if err != nil || imported != nil || got != (ImportResult{Items: 1, Stale: 1}) {
				t.Errorf("the write on a condition: %v; beside it (%t) the import: %+v, %v", err, began, got, imported)
			}
			c.serves(c.nodes[hosts[0]])
			for range 3 {
				c.round()
			}
			for i, ns := range c.spaces {
				r, err := ns.Get(t.Context(), []byte("key"))
				if deletes != errors.Is(err, ErrDeleted) || !deletes && string(r.Value) != "put" {
					t.Errorf("node %d reads %q, %v", i, r.Value, err)
				}
			}
		})
	}
}

// An item with a date that hosts have promised to hold all up to is written as of now over what is earlier than the date: what was
// made of it before counts as nothing later.
func TestLateItemOverAnEarlierRecord(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"a record": false, "a tombstone": true} {
		for how, ack := range map[string]Ack{"one": 1, "all": AckAll} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				c := newRoutedCluster(t, 4)
				_, err := c.put(0, "key", "first", route.All)
				c.must(err)
				date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
				c.now.Add(int64(2 * time.Minute))
				hosts, others := c.hosts("key")
				importer := c.spaces[others[0]]
				declined := [2]*atomic.Int64{c.promises(hosts[0], importer), c.promises(hosts[1], importer)}
				item := Item{Key: []byte("key"), Value: []byte("dated"), Time: date}
				if deleted {
					item.Value, item.Deleted = nil, true
				}
				got, err := importer.Import(t.Context(), sequence([]Item{item}), Acks(ack))
				if err != nil || got != (ImportResult{Items: 1, Written: 1, Late: 1}) || declined[0].Load()+declined[1].Load() == 0 {
					t.Errorf("%+v, %v", got, err)
				}
				for _, i := range hosts {
					c.serves(c.nodes[i])
				}
				for range 3 {
					c.round()
				}
				importer.node.routing.close()
				for i, ns := range c.spaces {
					r, err := ns.Get(t.Context(), []byte("key"))
					if deleted != (errors.Is(err, ErrDeleted) || errors.Is(err, ErrNotFound)) || !deleted && string(r.Value) != "dated" {
						t.Errorf("node %d reads %q, %v", i, r.Value, err)
					}
				}
			})
		}
	}
}

// Hosts have declined the date of an item, and then acknowledge a put of the same node, all of them: that is later than the date, and
// the record of now has not seen it.
func TestPutBetweenALateItemAndItsRecord(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	key := []byte("key")
	hosts, others := c.hosts("key")
	importer := c.spaces[others[0]]
	date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
	c.now.Add(int64(2 * time.Minute))
	var asked atomic.Int64
	both, put := make(chan bool), make(chan bool)
	for _, host := range hosts {
		n := c.nodes[host]
		c.lies(n, importer, func(ask *wire.Ask) wire.Answering {
			if q, ok := ask.Question.(*wire.AskHold); ok && !q.Look && q.Records[0].Version.Writer == 0 {
				if asked.Add(1) == int64(len(hosts)) {
					close(both)
				}
				<-put
				return &wire.HoldAnswer{Settled: true, Outcomes: []wire.HoldOutcome{{Declined: wire.ReasonFloor}}}
			}
			return n.honest(importer, ask)
		})
	}
	importer.node.routing.close()
	go func() {
		defer close(put)
		select {
		case <-both:
		case <-t.Context().Done():
		}
		_, err := importer.Put(t.Context(), key, []byte("put"), Acks(AckAll))
		if err != nil {
			t.Error(err)
		}
	}()
	got, err := importer.Import(t.Context(), sequence([]Item{{Key: key, Value: []byte("dated"), Time: date}}), Acks(AckAll))
	if err != nil || got != (ImportResult{Items: 1, Stale: 1}) || asked.Load() != int64(len(hosts)) {
		t.Errorf("%+v, %v, %d hosts were asked", got, err, asked.Load())
	}
	for _, host := range hosts {
		c.serves(c.nodes[host])
	}
	for range 3 {
		c.round()
	}
	importer.node.routing.close()
	for i, ns := range c.spaces {
		if r, err := ns.Get(t.Context(), key); err != nil || string(r.Value) != "put" {
			t.Errorf("node %d reads %q, %v", i, r.Value, err)
		}
	}
}
