package peer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// An import of deletions of keys that are not there ends, beside a host that answers nothing, with the first one of which that is
// not sure: the others do not wait for that host, one behind the other.
func TestImportOfDeletionsBesideAHostThatHangs(t *testing.T) {
	t.Parallel()
	const many = 40
	run := func(t *testing.T, c *routedCluster, asker *Namespace, hosts []int, in func(key string) bool, most int32) {
		var asked atomic.Int32
		c.hears(c.nodes[hosts[0]], func(by ID, ask *wire.Ask) bool {
			if _, ok := ask.Question.(*wire.AskRecord); ok && by == asker.node.ID() {
				asked.Add(1)
			}
			return true
		})
		asker.node.routing.close()
		c.silences(hosts[1], asker)
		var items []Item
		for i := 0; len(items) < many; i++ {
			if key := fmt.Sprint("nothing is there ", i); in(key) {
				items = append(items, Item{Key: []byte(key), Deleted: true})
			}
		}
		if got, err := asker.Import(t.Context(), sequence(items)); !errors.Is(err, ErrUnsure) {
			t.Errorf("%+v, %v", got, err)
		}
		if n := asked.Load(); n > most {
			t.Errorf("the host that answers was asked about %d keys, want at most %d", n, most)
		}
	}
	t.Run("hash", func(t *testing.T) {
		c, _, asker, hosts := newBothCurrent(t)
		c.now.Add(int64(time.Minute)) // neither host is sure by itself
		home := asker.core.Home([]byte("key"))
		run(t, c, asker, hosts, func(key string) bool { return asker.core.Home([]byte(key)) == home }, 4)
	})
	t.Run("writer", func(t *testing.T) {
		c := newWriterCluster(t, 4)
		key, asker, hosts, _ := c.onTwo()
		c.pass(6 * time.Second) // the locator has heard of no host lately
		entries := asker.core.Entries([]byte(key))
		run(t, c.routedCluster, asker, hosts, func(key string) bool { return asker.core.Entries([]byte(key)) == entries }, 4*importShardsAtOnce)
	})
}
