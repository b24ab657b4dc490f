// Package locator measures internal/locator at its target: 10^7 keys over 256 shards, 625,000
// new ones, and 600,000 moves and removals, with what it was before: a ribbon.Map of all keys
// under an exact map of what has changed. Times are those that the thread had a processor. The
// longest look-up is measured by the clock, too, with that of a control that does nothing: on a
// busy machine the system takes the processor from both.
package locator

import (
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
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/placement"
)

const (
	shards = 256
	turn   = 20_000 // look-ups in a row
	turns  = 51
)

// key i is in set(i), under index(i), and its value in shard(i). index is a bijection of 42 bits.
func index(i int) dbadapter.Index {
	const mask = 1<<42 - 1
	x := uint64(i)
	for _, m := range []uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb} {
		x = (x ^ x>>21) * m & mask
	}
	return dbadapter.Index((x ^ x>>21) % (1<<42 - 11))
}

func set(i int) placement.Shard { return placement.Shard(i % shards) }

func shard(i int) locator.Code { return locator.Code(uint64(i) * 0x94d049bb133111eb >> 56) }

// disk is one in memory.
type disk struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (d *disk) Read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[name], nil
}

func (d *disk) Write(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[name] = data
	return nil
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
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) { benchmark(b, n) })
	}
}

var sink placement.Shard

// feed tells an index of changes.
type feed struct{ x *locator.Index }

func (f *feed) set(b testing.TB, s placement.Shard, es []locator.Entry) {
	slices.Sort(es)
	if err := f.x.Replace(s, locator.Place{}, es); err != nil {
		b.Fatal(err)
	}
}

func (f *feed) change(i int, is locator.Code) {
	f.x.Apply(set(i), locator.Place{}, []locator.Entry{locator.NewEntry(index(i), is)})
}

func (f *feed) work(b testing.TB, more bool) {
	for run := f.x.Work(more); run != nil; run = f.x.Work(more) {
		if err := run(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmark(b *testing.B, n int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	report := func(x float64, unit string) { b.ReportMetric(x, unit) }
	report(0, "ns/op")
	d := &disk{files: map[string][]byte{}}
	x, err := locator.Open(locator.Config{Shards: shards, Seed: 1, Disk: d})
	if err != nil {
		b.Fatal(err)
	}
	f := &feed{x: x}
	for s := range shards {
		var es []locator.Entry
		for i := s; i < n; i += shards {
			es = append(es, locator.NewEntry(index(i), shard(i)))
		}
		f.set(b, placement.Shard(s), es)
	}
	timed := func(unit string) {
		begin := processor()
		f.work(b, false)
		report(float64(processor()-begin)/1e9, unit)
	}
	timed("build-s")

	later, moved := n/16*15/16, n*6/100
	// per reports what each of m calls takes, in turns of 1,000, between which work is done.
	per := func(m int, work func(), of map[string]func(i int)) {
		total := map[string]int64{}
		for from := 0; from < m; from += 1000 {
			for unit, do := range of {
				begin := processor()
				for i := from; i < min(from+1000, m); i++ {
					do(i)
				}
				total[unit] += processor() - begin
			}
			work()
		}
		for unit, t := range total {
			report(float64(t)/float64(m), unit)
		}
	}
	key := func(i int) uint64 { return uint64(index(i)) | uint64(set(i))<<42 }
	plain := map[uint64]uint16{}
	for i := range n {
		plain[key(i)] = uint16(shard(i))
	}
	work := func() { f.work(b, true) }
	begun := x.Stats().Rebuilt
	per(later, work, map[string]func(i int){
		"insert-ns":     func(i int) { f.change(n+i, shard(n+i)) },
		"map-insert-ns": func(i int) { plain[key(n+i)] = uint16(shard(n + i)) },
	})
	plain = nil
	r := rand.New(rand.NewPCG(1, 2))
	// Half are moves, half removals.
	moves := r.Perm(n)[:moved]
	per(moved/2, work, map[string]func(i int){
		"move-ns":   func(i int) { f.change(moves[i], shard(moves[i])^1) },
		"remove-ns": func(i int) { f.change(moves[i+moved/2], locator.Gone) },
	})

	s := x.Stats()
	b.Logf("%+v", s)
	if s.Rebuilt != begun {
		b.Error("it was rebuilt in between")
	}
	for _, part := range []struct {
		name  string
		bytes int
	}{{"field", s.FieldBytes}, {"exact", s.ExactBytes}, {"changed", s.ChangedBytes}, {"all", s.Bytes()}} {
		report(float64(part.bytes)/float64(n), part.name+"-B/key")
	}

	// What it was before.
	hashes, values := make([]uint64, n), make([]uint64, n)
	for i := range n {
		hashes[i], values[i] = keyed.Number(key(i)).Hash(2), uint64(shard(i))
	}
	base, err := ribbon.BuildMap(ribbon.Config{ValueBits: 8, FingerprintBits: 12, Seed: 1, Workers: 1}, keyed.Numbers(hashes), values)
	if err != nil {
		b.Fatal(err)
	}
	over, err := cuckoo.NewMap[dbadapter.Index, uint64](cuckoo.MapConfig{}) // no two of these keys have one index
	if err != nil {
		b.Fatal(err)
	}
	for i := range later {
		_ = over.Set(index(n+i), uint64(shard(n+i)))
	}
	for _, i := range moves {
		_ = over.Set(index(i), uint64(shard(i)^1))
	}
	before := func(i int) placement.Shard {
		if v, ok := over.Get(index(i)); ok {
			return placement.Shard(v)
		}
		v, _ := base.Lookup(keyed.Number(keyed.Number(key(i)).Hash(2)))
		return placement.Shard(v)
	}

	for _, kind := range []struct {
		name string
		draw func() int
	}{
		{"hit", func() int { return r.IntN(n) }},
		{"new", func() int { return n + r.IntN(later) }},
		{"miss", func() int { return n + later + r.IntN(n) }},
	} {
		var now, then []float64
		keys := make([]int, turn)
		counts := map[locator.Where]int{}
		for range turns {
			for i := range keys {
				keys[i] = kind.draw()
			}
			begin := processor()
			for _, i := range keys {
				_, s := x.Lookup(set(i), index(i))
				sink += s
			}
			now = append(now, float64(processor()-begin)/turn)
			for i := range keys {
				keys[i] = kind.draw()
			}
			begin = processor()
			for _, i := range keys {
				sink += before(i)
			}
			then = append(then, float64(processor()-begin)/turn)
			for _, i := range keys {
				w, _ := x.Lookup(set(i), index(i))
				counts[w]++
			}
		}
		report(median(now), kind.name+"-ns")
		report(median(then), kind.name+"-before-ns")
		b.Logf("%s: %v of %d", kind.name, counts, turn*turns)
	}
	gone := map[int]bool{}
	for _, i := range moves {
		gone[i] = true
	}
	wrong := 0
	for i := range n + later {
		if w, s := x.Lookup(set(i), index(i)); !gone[i] && w != locator.Ask && (w == locator.Nowhere || locator.Code(s) != shard(i)) {
			wrong++
		}
	}
	report(float64(wrong), "wrong")

	// The longest look-up while as many keys as were moved are added, and while all is built anew.
	look := func(i int) { x.Lookup(set(i), index(i)) }
	for _, w := range []struct {
		name string
		look func(i int)
		work func()
	}{
		{"in-changes", look, func() {
			for i := range moved {
				f.change(n+later+i, shard(n+later+i))
			}
		}},
		{"in-rebuild", look, func() { timed("rebuild-s") }},
		{"of-control", func(int) {}, func() { time.Sleep(time.Second) }},
	} {
		clock, used := longest(n, w.look, w.work)
		report(clock, "longest-"+w.name+"-ms")
		report(used, "longest-"+w.name+"-processor-ms")
	}
	if x.Stats().Rebuilt == begun {
		b.Error("it was not rebuilt")
	}
}

// longest is the longest of many calls of look while work goes on, in
// milliseconds: by the clock, and of the processor's time.
func longest(n int, look func(i int), work func()) (clock, used float64) {
	var done atomic.Bool
	var most time.Duration
	var mostUsed int64
	var reader sync.WaitGroup
	reader.Go(func() {
		runtime.LockOSThread()
		r := rand.New(rand.NewPCG(3, 4))
		for !done.Load() {
			i := r.IntN(2 * n)
			begin, usedBefore := time.Now(), processor()
			look(i)
			most, mostUsed = max(most, time.Since(begin)), max(mostUsed, processor()-usedBefore)
		}
	})
	work()
	done.Store(true)
	reader.Wait()
	return float64(most.Microseconds()) / 1000, float64(mostUsed) / 1e6
}
