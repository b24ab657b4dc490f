package peer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

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
