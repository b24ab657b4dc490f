package peer

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Where a host hides what it holds, and says that it has collected all, a read is sure if another host is current.
func TestHostHidesByAFloor(t *testing.T) {
	for name, floor := range map[string]dbadapter.Timestamp{"none": 0, "all": 1<<64 - 1} {
		t.Run(name, func(t *testing.T) {
			c := newRoutedCluster(t, 4)
			_, err := c.put(0, "key", "value", route.All)
			c.must(err)
			hosts, others := c.hosts("key")
			asker, liar := c.spaces[others[0]], c.nodes[hosts[0]]
			c.current(hosts[1], hosts[0], "key")
			c.liesBy(liar, asker, wire.Greeting{List: asker.core.Members().Digest(), Floor: floor}, func(*wire.Ask) wire.Answering { return &wire.RecordAnswer{Settled: true} })
			asker.node.routing.close()
			c.nearest(asker, hosts[0], hosts[1])
			for range 3 {
				got, err := asker.Get(t.Context(), []byte("key"))
				if err != nil || string(got.Value) != "value" {
					t.Errorf("%q, %v", got.Value, err)
				}
			}
		})
	}
}

// A read that is made anew at its deadline, since one of a key's three hosts hangs, does not forget what it has found.
func TestAnewAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, floor := range map[string]dbadapter.Timestamp{"not anew": 0, "anew": 1<<64 - 1} {
		t.Run(name, func(t *testing.T) {
			c := &routedCluster{shardCluster: newShardCluster(t, 0, Config{NoPush: true})}
			c.kind, c.replicas = placement.Hash, 3
			for i := range 4 {
				c.metrics = append(c.metrics, prometheus.NewRegistry())
				c.base.Registerer = c.metrics[i]
				c.join()
			}
			for range 40 {
				c.round()
			}
			_, err := c.put(0, "key", "value", route.All)
			c.must(err)
			remote := c.spaces[0].core.Remote([]byte("key"))
			named, err := remote.Hosts()
			c.must(err)
			var hosts []int
			asker := -1
			for i, n := range c.nodes {
				is := false
				for _, id := range named {
					is = is || ID(id) == n.ID()
				}
				if is {
					hosts = append(hosts, i)
				} else {
					asker = i
				}
			}
			if len(hosts) != 3 {
				t.Fatal(hosts)
			}
			ns := c.spaces[asker]
			c.now.Add(int64(time.Hour)) // no host is current
			c.liesBy(c.nodes[hosts[0]], ns, wire.Greeting{List: ns.core.Members().Digest(), Floor: floor}, func(*wire.Ask) wire.Answering { return &wire.RecordAnswer{Settled: true} })
			c.lies(c.nodes[hosts[1]], ns, func(*wire.Ask) wire.Answering { return nil }) // hangs
			ns.node.routing.close()
			found, err := ns.lookUpUntil(t.Context(), ns.node.elapsed()+time.Second, []byte("key"), true)
			if found.Record == nil || err != nil {
				t.Errorf("found %v, sure %v, %v", found.Record, found.Sure, err)
			}
		})
	}
}
