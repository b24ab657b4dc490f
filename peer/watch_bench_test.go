package peer_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
)

// BenchmarkWatched measures what those that watch cost one that writes: turns without
// watchers and turns with 1,000 of them alternate on one node, and the ratio of their
// medians is reported, with the memory of a watcher that waits.
//
//	go test ./peer -run '^$' -bench Watched -benchtime 11x
func BenchmarkWatched(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d-writers", writers), func(b *testing.B) { benchWatched(b, writers) })
	}
}

func benchWatched(b *testing.B, writers int) {
	const watchers, puts = 1000, 2048
	n, err := peer.Open(b.Context(), peer.Config{Dir: b.TempDir(), ListenAddrs: []string{}})
	must(b, err)
	defer n.Close(context.Background())
	ns, err := n.CreateNamespace(b.Context(), "notes", peer.Policy{})
	must(b, err)
	value, turns := make([]byte, 100), 0
	turn := func() float64 {
		turns++
		began := time.Now()
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range puts / writers {
					if _, err := ns.Put(b.Context(), fmt.Append(nil, "key ", turns, w, i), value); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
		return puts / time.Since(began).Seconds()
	}
	turn()
	var alone, watched []float64
	var memory float64
	told := 0.0
	for range b.N {
		alone = append(alone, turn())
		before := inUse()
		ctx, cancel := context.WithCancel(b.Context())
		var all, began sync.WaitGroup
		var mu sync.Mutex
		began.Add(watchers)
		for range watchers {
			all.Go(func() {
				events := 0
				for e, err := range ns.Watch(ctx, "", peer.WithProgress(time.Hour)) {
					switch {
					case err != nil:
					case e.Kind == peer.EventAt:
						began.Done()
					default:
						events++
					}
				}
				mu.Lock()
				defer mu.Unlock()
				told += float64(events)
			})
		}
		began.Wait()
		memory = (inUse() - before) / watchers
		watched = append(watched, turn())
		cancel()
		all.Wait()
	}
	b.ReportMetric(middle(alone), "alone-puts/s")
	b.ReportMetric(middle(watched), "watched-puts/s")
	b.ReportMetric(middle(watched)/middle(alone), "ratio")
	b.ReportMetric(memory, "B/watcher")
	b.ReportMetric(told/float64(b.N)/watchers/puts, "told/put")
	b.ReportMetric(0, "ns/op")
}

// inUse is the memory of the heap and of the stacks that is in use.
func inUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

func middle(of []float64) float64 {
	of = slices.Clone(of)
	slices.Sort(of)
	return of[len(of)/2]
}
