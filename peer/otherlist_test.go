package peer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// All hosts that the asker knows of answer, are settled, and hold nothing; but they have another
// list of members, by which a further host may have taken a write: the asker is not sure.
func TestHostsWithAnotherListAreNotSure(t *testing.T) {
	c := newRoutedCluster(t, 4)
	_, err := c.put(0, "key", "value", route.All)
	c.must(err)
	hosts, others := c.hosts("key")
	asker := c.spaces[others[0]]
	for _, host := range hosts {
		c.lies(c.nodes[host], asker, func(*wire.Ask) wire.Answering { return &wire.RecordAnswer{Settled: true} })
	}
	asker.node.routing.close() // streams of before
	if got, err := asker.Get(t.Context(), []byte("key")); !errors.Is(err, ErrUnsure) {
		t.Errorf("%q, %v; want ErrUnsure", got.Value, err)
	}
}

// A layout is stated that its new hosts have not heard of: a write that goes to them tells them.
func TestWritesTellHostsOfTheirLayout(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	before, _, err := c.spaces[0].core.Layout()
	c.must(err)
	key := ""
	for rounds := 0; key == ""; rounds++ {
		if rounds == 300 {
			t.Fatal("no shard has moved")
		}
		if rounds%30 == 0 { // another one, if no shard has moved to a node that has not heard of it
			c.join()
		}
		c.now.Add(int64(5 * time.Second))
		c.spaces[0].tend()
		key = c.movedUnheard(before)
	}
	if _, err := c.put(0, key, "value", route.All); err != nil {
		t.Errorf("%q: %v", key, err)
	}
}

// movedUnheard is a key that by node 0's layout has a host which has not heard of it, and was
// none before.
func (c *routedCluster) movedUnheard(before *placement.Layout) string {
	now, newest, err := c.spaces[0].core.Layout()
	c.must(err)
	for i := range 1000 {
		key := fmt.Sprint("key ", i)
		shard := c.spaces[0].core.Home([]byte(key))
		for _, id := range now.Hosts(shard) {
			for n, ns := range c.spaces {
				_, stated, _ := ns.core.Layout()
				if n > 0 && node.ID(c.nodes[n].ID()) == id && stated.Epoch < newest.Epoch && !slices.Contains(before.Hosts(shard), id) {
					return key
				}
			}
		}
	}
	return ""
}
