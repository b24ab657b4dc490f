package peer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
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

// BenchmarkWaits has ten writers put a record each every 10 ms into a node with a
// folder, whether or not the one before has ended, first alone for three seconds and then
// while the node fetches 60,000 records that it lacks, and reports how long a put takes
// from when it was due: the median and the 99th percentile, alone and beside the sync, and
// the ratios, each the median of the rounds. Both nodes of the sync share the machine.
func BenchmarkWaits(b *testing.B) {
	const records, alone, rest = 60_000, 3 * time.Second, 2 * time.Second
	open := func() *Node {
		n, err := Open(b.Context(), Config{Dir: b.TempDir(), ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}})
		must(b, err)
		return n
	}
	from, to := open(), open()
	defer benchClose(b, from)
	defer benchClose(b, to)
	for _, unsigned := range []bool{true, false} {
		name := map[bool]string{true: "unsigned", false: "signed"}[unsigned]
		b.Run(name, func(b *testing.B) {
			source, err := from.CreateNamespace(b.Context(), name+"-"+fmt.Sprint(b.N), Policy{Unsigned: unsigned})
			must(b, err)
			ticket, err := source.Invite(b.Context(), InviteOptions{Role: RoleWrite})
			must(b, err)
			ns, err := to.Join(b.Context(), ticket)
			must(b, err)
			w := waits{b: b, ns: ns}
			if _, err := ns.Put(b.Context(), []byte("first"), nil); err != nil { // so that the set is not empty
				b.Fatal(err)
			}
			must(b, errOf(ns.Sync(b.Context(), from.self.id, SyncOptions{})))
			measured := map[string][]float64{}
			for round := 0; b.Loop(); round++ {
				must(b, errOf(source.Import(b.Context(), waitsItems(round, records))))
				time.Sleep(rest) // both databases come to rest after the import
				p50, p99 := w.during(func() { time.Sleep(alone) })
				start := time.Now()
				beside50, beside99 := w.during(func() {
					r, err := ns.Sync(b.Context(), from.self.id, SyncOptions{})
					if err != nil || r.MissingHere < records {
						b.Fatalf("%+v, %v", r, err)
					}
				})
				for name, value := range map[string]float64{
					"sync-s": time.Since(start).Seconds(), "p50-alone-ms": 1e3 * p50, "p99-alone-ms": 1e3 * p99,
					"p50-beside-ms": 1e3 * beside50, "p99-beside-ms": 1e3 * beside99, "p50-x": beside50 / p50, "p99-x": beside99 / p99,
				} {
					measured[name] = append(measured[name], value)
				}
			}
			for name, all := range measured {
				slices.Sort(all)
				b.ReportMetric(all[len(all)/2], name)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func waitsItems(round, n int) func(yield func(Item, error) bool) {
	return func(yield func(Item, error) bool) {
		for i := range n {
			if !yield(Item{Key: fmt.Appendf(nil, "round/%d/%08d", round, i), Value: fmt.Appendf(nil, "%0256d", i)}, nil) {
				return
			}
		}
	}
}

type waits struct {
	b    *testing.B
	ns   *Namespace
	turn int
}

// during has the writers put until run returns, and returns the median and the 99th
// percentile of their waits, in seconds.
func (w *waits) during(run func()) (p50, p99 float64) {
	const writers, pause = 10, 10 * time.Millisecond
	w.turn++
	ctx, cancel := context.WithCancel(w.b.Context())
	var (
		mu    sync.Mutex
		all   []time.Duration
		ended sync.WaitGroup
	)
	for writer := range writers {
		ended.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			var puts sync.WaitGroup
			defer puts.Wait()
			for i := 0; ctx.Err() == nil; i++ {
				due := time.Now()
				puts.Go(func() {
					if _, err := w.ns.Put(w.b.Context(), fmt.Appendf(nil, "put/%d/%d/%d", w.turn, writer, i), make([]byte, 256)); err != nil {
						w.b.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					all = append(all, time.Since(due))
				})
				<-tick.C
			}
		})
	}
	run()
	cancel()
	ended.Wait()
	slices.Sort(all)
	return all[len(all)/2].Seconds(), all[len(all)*99/100].Seconds()
}

// BenchmarkTransports compares a node that listens over TCP only, over QUIC only,
// and over both.
func BenchmarkTransports(b *testing.B) {
	for name, listen := range map[string][]string{
		"tcp": {"/ip4/127.0.0.1/tcp/0"}, "quic": {"/ip4/127.0.0.1/udp/0/quic-v1"}, "both": nil,
	} {
		b.Run("open/"+name, func(b *testing.B) {
			for b.Loop() {
				n := benchOpen(b, listen)
				b.StopTimer()
				benchClose(b, n)
				b.StartTimer()
			}
		})
		b.Run("connect/"+name, func(b *testing.B) {
			n := benchOpen(b, listen)
			defer benchClose(b, n)
			from := benchOpen(b, []string{})
			defer benchClose(b, from)
			for b.Loop() {
				must(b, from.host.Dial(b.Context(), n.self.id, n.host.Dialable()))
				b.StopTimer()
				must(b, from.host.Network().ClosePeer(n.self.id))
				b.StartTimer()
			}
		})
		b.Run("sync64MiB/"+name, func(b *testing.B) {
			b.SetBytes(64 << 20)
			for b.Loop() {
				b.StopTimer()
				n, ns := benchPair(b, listen)
				b.StartTimer()
				r, err := ns.Sync(b.Context(), n.self.id, SyncOptions{})
				if err != nil || !r.Verified || r.Applied != 64 {
					b.Fatalf("%+v, %v", r, err)
				}
				b.StopTimer()
				benchClose(b, n)
				benchClose(b, ns.node)
				b.StartTimer()
			}
		})
	}
}

func benchOpen(b *testing.B, listen []string) *Node {
	b.Helper()
	n, err := Open(b.Context(), Config{ListenAddrs: listen})
	must(b, err)
	return n
}

func benchClose(b *testing.B, n *Node) {
	b.Helper()
	must(b, n.Close(b.Context()))
}

// benchPair is a node with 64 records of 1 MiB, and a member without.
func benchPair(b *testing.B, listen []string) (*Node, *Namespace) {
	b.Helper()
	n, member := benchOpen(b, listen), benchOpen(b, []string{})
	at, err := n.CreateNamespace(b.Context(), "bench", Policy{})
	must(b, err)
	ticket, err := at.Invite(b.Context(), InviteOptions{})
	must(b, err)
	ns, err := member.Join(b.Context(), ticket)
	must(b, err)
	for i := range 64 {
		value := make([]byte, 1<<20)
		value[0] = byte(i)
		must(b, errOf(at.Put(b.Context(), fmt.Append(nil, i), value)))
	}
	return n, ns
}
