// Package locator measures bfield/locator at its target: 10^7 keys over 256
// shards, a sixteenth as many new ones, and 600,000 moves and removals. The two
// deltas stand beside each other, and beside a cuckoo.Wide of as many entries.
// Times are those that the thread had a processor, but for the longest look-up,
// which is by the clock, beside that of a control that does nothing: on a busy
// machine the system takes the processor from both.
package locator

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/syncd-io/syncd/bfield/cuckoo"
	"github.com/syncd-io/syncd/bfield/locator"
)

const (
	shards = 256
	turn   = 20_000 // look-ups in a row
	turns  = 51
)

// hash is key i's, a bijection (the finalizer of SplitMix64).
func hash(i int) uint64 {
	x := uint64(i) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func shard(i int) locator.Shard { return locator.Shard(hash(i) * 0x94d049bb133111eb >> 56) }

// feed yields the keys from 0 to n − 1.
func feed(n int) locator.Feed {
	return func(yield func(uint64, locator.Shard) bool) error {
		for i := range n {
			if !yield(hash(i), shard(i)) {
				break
			}
		}
		return nil
	}
}

// processor is the time, in nanoseconds, that this thread had a processor.
func processor() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

func BenchmarkLocator(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		for _, delta := range []locator.Delta{locator.ExactDelta, locator.FieldDelta} {
			b.Run(fmt.Sprintf("n=%d/delta=%d", n, delta), func(b *testing.B) { benchmark(b, n, delta) })
		}
	}
}

var sink locator.Shard

func benchmark(b *testing.B, n int, delta locator.Delta) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l, err := locator.New(locator.Config{Shards: shards, Delta: delta, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	report := func(x float64, unit string) { b.ReportMetric(x, unit) }
	report(0, "ns/op")
	per := func(m int, unit string, do func(from int)) {
		begin := processor()
		for from := 0; from < m; from += 1000 {
			do(from)
		}
		report(float64(processor()-begin)/float64(m), unit)
	}
	rebuild := func(n int) float64 {
		begin := time.Now()
		if err := l.Rebuild(feed(n)); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin).Seconds()
	}
	report(rebuild(n), "rebuild-s")

	later, moved := n/16, n*6/100
	hashes := make([]uint64, 1000)
	per(later, "insert-ns", func(from int) {
		for i := range min(1000, later-from) {
			if err := l.Set(hash(n+from+i), shard(n+from+i)); err != nil {
				b.Fatal(err)
			}
		}
	})
	if delta == locator.FieldDelta {
		begin := processor()
		if err := l.Repair(feed(n + later)); err != nil {
			b.Fatal(err)
		}
		report(float64(processor()-begin)/1e9, "repair-s")
	}
	// Half are moves, one at a time, and half removals, in batches.
	r := rand.New(rand.NewPCG(1, 2))
	per(moved/2, "move-ns", func(int) {
		for range 1000 {
			i := r.IntN(n)
			if err := l.Set(hash(i), shard(i)^1); err != nil {
				b.Fatal(err)
			}
		}
	})
	per(moved/2, "remove-batch-ns", func(int) {
		for i := range hashes {
			hashes[i] = hash(r.IntN(n))
		}
		l.RemoveBatch(hashes)
	})

	s := l.Stats()
	for _, part := range []struct {
		name  string
		bytes int
	}{{"base", s.BaseBytes}, {"run", s.RunBytes}, {"tail", s.TailBytes}, {"field", s.FieldBytes}, {"all", s.Bytes()}} {
		report(float64(part.bytes)/float64(n), part.name+"-B/key")
	}
	report(float64(s.RunBytes)/float64(max(1, s.Exact-s.Tail)), "run-B/entry")
	exact, _ := cuckoo.NewWide[uint64, uint64](cuckoo.MapConfig{})
	for i := range s.Exact {
		if err := exact.Set(hash(i), 1); err != nil {
			b.Fatal(err)
		}
	}
	report(float64(exact.Stats().Bytes)/float64(s.Exact), "cuckoo-B/entry")
	b.Logf("%+v", s)

	for _, kind := range []struct {
		name string
		draw func() uint64
	}{
		{"hit", func() uint64 { return hash(r.IntN(n)) }},
		{"new", func() uint64 { return hash(n + r.IntN(later)) }},
		{"miss", func() uint64 { return hash(n + later + r.IntN(n)) }},
	} {
		var alone, together []float64
		hashes, of, answers := make([]uint64, turn), make([]locator.Shard, turn), make([]locator.Answer, turn)
		counts := map[locator.Answer]int{}
		for range turns {
			for i := range hashes {
				hashes[i] = kind.draw()
			}
			begin := processor()
			for _, h := range hashes {
				s, _ := l.Lookup(h)
				sink += s
			}
			alone = append(alone, float64(processor()-begin)/turn)
			for i := range hashes {
				hashes[i] = kind.draw()
			}
			begin = processor()
			l.LookupBatch(hashes, of, answers)
			together = append(together, float64(processor()-begin)/turn)
			for _, a := range answers {
				counts[a]++
			}
		}
		report(median(alone), kind.name+"-ns")
		report(median(together), kind.name+"-batch-ns")
		b.Logf("%s: %v of %d", kind.name, counts, turn*turns)
	}
	var saved bytes.Buffer
	begin := processor()
	if _, err := l.WriteTo(&saved); err != nil {
		b.Fatal(err)
	}
	report(float64(processor()-begin)/1e6, "save-ms")
	begin = processor()
	if _, err := locator.Open(saved.Bytes(), 0); err != nil {
		b.Fatal(err)
	}
	report(float64(processor()-begin)/1e6, "open-ms")
	saved = bytes.Buffer{}

	// The longest look-up while as many keys as were moved are added in one batch,
	// and while the base is rebuilt.
	hashes = make([]uint64, moved)
	of := make([]locator.Shard, moved)
	for i := range hashes {
		hashes[i], of[i] = hash(n+later+i), shard(n+later+i)
	}
	look := func(h uint64) { l.Lookup(h) }
	for _, w := range []struct {
		name string
		look func(h uint64)
		work func()
	}{
		{"in-batch", look, func() {
			if err := l.SetBatch(hashes, of); err != nil {
				b.Fatal(err)
			}
		}},
		{"in-rebuild", look, func() { rebuild(n + later + moved) }},
		{"of-control", func(uint64) {}, func() { rebuild(n + later + moved) }},
	} {
		clock, used := longest(n, w.look, w.work)
		report(clock, "longest-"+w.name+"-ms")
		report(used, "longest-"+w.name+"-processor-ms")
	}
}

// longest is the longest of many calls of look while work goes on, in
// milliseconds: by the clock, and of the processor's time.
func longest(n int, look func(h uint64), work func()) (clock, used float64) {
	var done atomic.Bool
	var most time.Duration
	var mostUsed int64
	var reader sync.WaitGroup
	reader.Go(func() {
		runtime.LockOSThread()
		r := rand.New(rand.NewPCG(3, 4))
		for !done.Load() {
			h := hash(r.IntN(2 * n))
			begin, usedBefore := time.Now(), processor()
			look(h)
			most, mostUsed = max(most, time.Since(begin)), max(mostUsed, processor()-usedBefore)
		}
	})
	work()
	done.Store(true)
	reader.Wait()
	return float64(most.Microseconds()) / 1000, float64(mostUsed) / 1e6
}
