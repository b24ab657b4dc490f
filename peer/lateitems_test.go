package peer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Of several items of one key that are written as of now the one that is dated last stands, in whatever order and by whatever
// import they come, and so does a dated one behind them whose date hosts take.
func TestLateItemsOfOneKey(t *testing.T) {
	t.Parallel()
	for _, kind := range []placement.Kind{placement.Hash, placement.Writer} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			w := &writerCluster{}
			key := "key"
			var hosts, order []int // all nodes, those first that do not host the key
			if kind == placement.Writer {
				w = newWriterCluster(t, 4)
				key, _, hosts, _ = w.onTwo()
			} else {
				w.routedCluster = newRoutedCluster(t, 4)
				_, err := w.put(0, key, "first", route.All)
				w.must(err)
				hosts, _ = w.hosts(key)
			}
			c := w.routedCluster
			for i := range c.nodes {
				if !slices.Contains(hosts, i) {
					order = append(order, i)
				}
			}
			order = append(order, hosts...)
			follow := func() {
				for range 3 {
					c.round()
					if kind == placement.Writer {
						w.follow()
					}
				}
			}
			date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
			c.now.Add(int64(2 * time.Minute))
			follow()
			items := func(seconds ...int) (all []Item) {
				for _, s := range seconds {
					all = append(all, Item{Key: []byte(key), Value: fmt.Append(nil, s), Time: date.Add(time.Duration(s) * time.Second)})
				}
				return all
			}
			for round, step := range []struct {
				at    int
				items []Item
				want  ImportResult
				value string
			}{
				{0, items(10), ImportResult{Items: 1, Written: 1, Late: 1}, "10"},
				{1, items(20, 15), ImportResult{Items: 2, Written: 1, Stale: 1, Late: 1}, "20"},
				{2, items(5), ImportResult{Items: 1, Stale: 1}, "20"},
				{3, items(20), ImportResult{Items: 1, Unchanged: 1}, "20"},
				{2, items(30), ImportResult{Items: 1, Written: 1, Late: 1}, "30"}, // its date is taken, and is before what stands
			} {
				ns := c.spaces[order[step.at]]
				if round == 0 {
					for _, i := range hosts {
						c.promises(i, ns)
					}
				}
				got, err := ns.Import(t.Context(), sequence(step.items), Acks(AckAll))
				if err != nil || got != step.want {
					t.Errorf("round %d: %+v, %v", round, got, err)
				}
				if round == 0 {
					for _, i := range hosts {
						c.serves(c.nodes[i])
					}
					ns.node.routing.close()
				}
				follow()
				for i, ns := range c.spaces {
					ns.node.routing.close()
					if r, err := ns.Get(t.Context(), []byte(key)); err != nil || string(r.Value) != step.value {
						t.Errorf("round %d: node %d reads %q, %v", round, i, r.Value, err)
					}
				}
			}
		})
	}
}

// A host that has not heard of a later deletion or put, which other hosts have acknowledged, asks them before it writes a late item.
func TestLateItemAtAHostThatIsBehind(t *testing.T) {
	t.Parallel()
	for name, deletes := range map[string]bool{"put": false, "delete": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newReplicatedCluster(t, placement.Hash, 4, 2, Config{NoPush: true})
			_, err := c.put(0, "key", "first", route.All)
			c.must(err)
			date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
			c.now.Add(int64(2 * time.Minute))
			c.promisesAll("key")
			hosts, others := c.hosts("key")
			behind, author := c.nodes[hosts[1]], c.spaces[others[0]]
			c.hears(behind, func(by ID, ask *wire.Ask) bool {
				_, ok := ask.Question.(*wire.AskHold)
				return !ok || by != author.node.ID()
			})
			author.node.routing.close()
			if deletes {
				_, err = author.Delete(t.Context(), []byte("key"))
			} else {
				_, err = author.Put(t.Context(), []byte("key"), []byte("put"))
			}
			c.must(err)
			c.serves(behind)
			for _, item := range []Item{
				{Key: []byte("key"), Value: []byte("dated"), Time: date},
				{Key: []byte("key"), Value: []byte("first"), Time: date}, // as it is here
			} {
				if got, err := c.spaces[hosts[1]].Import(t.Context(), sequence([]Item{item})); err != nil || got != (ImportResult{Items: 1, Stale: 1}) {
					t.Errorf("%s: %+v, %v", item.Value, got, err)
				}
			}
			for range 3 {
				c.round()
			}
			author.node.routing.close()
			for i, ns := range c.spaces {
				r, err := ns.Get(t.Context(), []byte("key"))
				if deletes != (errors.Is(err, ErrDeleted) || errors.Is(err, ErrNotFound)) || !deletes && string(r.Value) != "put" {
					t.Errorf("node %d reads %q, %v", i, r.Value, err)
				}
			}
		})
	}
}

// promisesAll has the hosts of a key promise to hold all up to now, as for a deletion in its shard.
func (c *routedCluster) promisesAll(key string) {
	c.t.Helper()
	other := c.beside(c.spaces[0], key)
	_, err := c.put(0, other, "1", route.All)
	c.must(err)
	_, err = c.spaces[0].Delete(c.t.Context(), []byte(other), Acks(AckAll))
	c.must(err)
	for range 12 {
		c.round()
	}
}
