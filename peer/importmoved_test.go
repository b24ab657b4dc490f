package peer

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// A layout comes by which a node is no host of a shard any more, while imports at the node wait to write
// to that shard: they go on at the shard's hosts.
func TestImportsGoOnWhereTheShardIs(t *testing.T) {
	c := newRoutedCluster(t, 3)
	ns := c.spaces[0]
	var releases []func()
	for _, sh := range ns.shards() {
		a, err := sh.set.Write(node.Draft{Record: dbadapter.Record{Key: []byte("held up")}})
		c.must(err)
		release := sync.OnceFunc(a.Hold())
		releases = append(releases, release)
		t.Cleanup(release) // else a failed test would wait for ever
	}
	done := make(chan error, 2)
	for i, ack := range []Ack{1, AckAll} {
		go func() {
			got, err := ns.Import(t.Context(), sequence(shardItems(200*i, 200*(i+1), "v")), Acks(ack))
			if err == nil && got.Items != 200 {
				err = fmt.Errorf("%+v", got)
			}
			done <- err
		}()
	}
	time.Sleep(300 * time.Millisecond) // they wait by then, of which nothing tells; one that does not yet goes to the hosts at once
	before, _, err := ns.core.Layout()
	c.must(err)
	for joined, lost := 3, false; !lost; joined++ {
		if joined == 24 { // of four shards and more that a node holds among three it keeps all then once in 4,000 times at most
			t.Fatal("the node is a host of all shards still")
		}
		c.metrics = append(c.metrics, prometheus.NewRegistry())
		c.base.Registerer = c.metrics[joined]
		c.join()
		for range 60 {
			c.now.Add(int64(5 * time.Second))
			_, _, err := ns.core.Arrange(t.Context())
			c.must(err)
		}
		after, _, err := ns.core.Layout()
		c.must(err)
		for s := range placement.Shard(8) {
			lost = lost || before.Has(s, node.ID(c.nodes[0].ID())) && !after.Has(s, node.ID(c.nodes[0].ID()))
		}
	}
	for _, release := range releases {
		release()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, item := range shardItems(0, 400, "v") {
		if f, err := c.spaces[1].lookUp(t.Context(), item.Key, false); err != nil || f.Record == nil || string(f.Record.Value) != string(item.Value) {
			t.Fatalf("%q: %+v, %v", item.Key, f, err)
		}
	}
}
