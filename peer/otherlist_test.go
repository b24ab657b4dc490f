package peer

import (
	"errors"
	"testing"

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
