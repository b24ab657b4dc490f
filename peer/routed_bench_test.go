package peer

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/placement"
)

// BenchmarkRouted compares a look-up at a node that asks a host, with the least that two
// messages over the same link take, and with the look-up at the host: in turns, medians.
func BenchmarkRouted(b *testing.B) {
	c := newReplicatedCluster(b, placement.Hash, 5, 3, Config{NoPush: true})
	const key = "key"
	hosts, others := c.hosts(key)
	host, other := c.nodes[hosts[0]], c.nodes[others[0]]
	must(b, errOf(c.put(others[0], key, "value", All)))
	host.host.SetStreamHandler("/echo", func(s network.Stream) { _, _ = io.Copy(s, s) })
	link, err := other.host.NewStream(b.Context(), host.ID(), "/echo")
	c.must(err)
	var message [256]byte
	ways := []struct {
		name string
		do   func()
		took []time.Duration
	}{
		{"link", func() {
			_, err := link.Write(message[:])
			c.must(err)
			_, err = io.ReadFull(link, message[:])
			c.must(err)
		}, nil},
		{"host", func() { _, err := c.spaces[hosts[0]].Get(b.Context(), []byte(key), Read(One)); c.must(err) }, nil},
		{"one", func() { _, err := c.spaces[others[0]].Get(b.Context(), []byte(key), Read(One)); c.must(err) }, nil},
		{"quorum", func() { _, err := c.spaces[others[0]].Get(b.Context(), []byte(key)); c.must(err) }, nil},
		{"put-one", func() { _, err := c.put(others[0], "p1", "v", One); c.must(err) }, nil},
		{"put-quorum", func() { _, err := c.put(others[0], "p2", "v", Quorum); c.must(err) }, nil},
	}
	for b.Loop() {
		for i := range ways {
			began := time.Now()
			ways[i].do()
			ways[i].took = append(ways[i].took, time.Since(began))
		}
	}
	for i := range ways {
		slices.Sort(ways[i].took)
		b.ReportMetric(float64(ways[i].took[len(ways[i].took)/2])/1e3, ways[i].name+"-µs")
	}
}
