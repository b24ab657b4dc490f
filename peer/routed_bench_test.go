package peer

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
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

// BenchmarkRoutedPuts is 64 writes at a time, of random keys at random nodes of eight.
func BenchmarkRoutedPuts(b *testing.B) {
	c := newClusterOf(b, placement.Hash, 8, Config{})
	var puts atomic.Int64
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := puts.Add(1)
			if _, err := c.put(int(i%8), fmt.Sprint("key ", i), "value", 1); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
}
