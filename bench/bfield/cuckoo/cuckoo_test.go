// Package cuckoo compares bfield/cuckoo with Go's map and with peers. Contenders
// take turns on slices of keys drawn anew, and the ratio of each turn's times is
// taken, so that a busy machine slows all alike; the medians are reported. Times
// are those that the thread had a processor.
package cuckoo

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dolthub/swiss"
	cuckoofilter "github.com/seiflotfy/cuckoofilter"
	"golang.org/x/sys/unix"

	"github.com/syncd-io/syncd/bfield/cuckoo"
	"github.com/syncd-io/syncd/bfield/keyed"
)

const (
	mask  = 1<<48 - 1
	turn  = 20_000 // look-ups of one contender in a row
	turns = 101
)

var sink uint64

// contender is one way to do the same work.
type contender struct {
	name string
	run  func(keys []uint64)
}

// race reports each contender's median time a key, and the median ratio to the
// first one.
func race(b *testing.B, draw func() []uint64, contenders ...contender) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	times := make([][]float64, len(contenders))
	for t := range turns {
		for i := range contenders {
			i = (i + t) % len(contenders)
			keys := draw() // of its own, so that no contender finds warm caches
			begin := processor()
			contenders[i].run(keys)
			times[i] = append(times[i], float64(processor()-begin)/float64(len(keys)))
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, c := range contenders {
		ratios := make([]float64, turns)
		for t := range ratios {
			ratios[t] = times[i][t] / times[0][t]
		}
		name := strings.ReplaceAll(c.name, " ", "-")
		b.ReportMetric(median(times[i]), name+"-ns")
		if i > 0 {
			b.ReportMetric(median(ratios), name+"/"+contenders[0].name)
		}
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

// heap is what the live objects take.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func BenchmarkMap(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) { benchmarkMap(b, n) })
	}
}

func benchmarkMap(b *testing.B, n int) {
	r := rand.New(rand.NewPCG(1, 2))
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = r.Uint64() & mask
	}
	var ours, growing *cuckoo.Map[uint64, uint64]
	var goMap, goGrowing map[uint64]uint64
	var peer *swiss.Map[uint64, uint64]
	build := func(make func(), set func(k uint64)) func(*testing.B) {
		return func(b *testing.B) {
			before := heap()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			begin := processor()
			make()
			for _, k := range keys {
				set(k)
			}
			took := processor() - begin
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took)/float64(n), "ns/key")
			b.ReportMetric((heap()-before)/float64(n), "bytes/key")
		}
	}
	set := func(m **cuckoo.Map[uint64, uint64]) func(uint64) {
		return func(k uint64) {
			if err := (*m).Set(k, k>>1); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("build/planned/map", build(func() { goMap = make(map[uint64]uint64, n) }, func(k uint64) { goMap[k] = k >> 1 }))
	b.Run("build/planned/swiss", build(func() { peer = swiss.NewMap[uint64, uint64](uint32(n)) }, func(k uint64) { peer.Put(k, k>>1) }))
	b.Run("build/planned/cuckoo", build(func() { ours, _ = cuckoo.NewMap[uint64, uint64](cuckoo.MapConfig{Keys: n}) }, set(&ours)))
	b.Run("build/growing/map", build(func() { goGrowing = map[uint64]uint64{} }, func(k uint64) { goGrowing[k] = k >> 1 }))
	b.Run("build/growing/cuckoo", build(func() { growing, _ = cuckoo.NewMap[uint64, uint64](cuckoo.MapConfig{}) }, set(&growing)))
	goGrowing = nil
	s := growing.Stats()
	b.Logf("n = %d, planned: %+v", n, ours.Stats())
	b.Logf("n = %d, grown: %+v", n, s)
	b.Logf("n = %d: an insertion moved %d entries at most, %.3f on average", n, s.Work.MostMoved, float64(s.Work.Moved)/float64(n))

	out := make([]uint64, turn)
	contenders := []contender{
		{"map", func(keys []uint64) {
			for _, k := range keys {
				sink += goMap[k]
			}
		}},
		{"get", func(keys []uint64) {
			for _, k := range keys {
				v, _ := ours.Get(k)
				sink += v
			}
		}},
		{"batch", func(keys []uint64) { ours.GetBatch(keys, out, nil) }},
		{"grown get", func(keys []uint64) {
			for _, k := range keys {
				v, _ := growing.Get(k)
				sink += v
			}
		}},
		{"grown batch", func(keys []uint64) { growing.GetBatch(keys, out, nil) }},
		{"swiss", func(keys []uint64) {
			for _, k := range keys {
				v, _ := peer.Get(k)
				sink += v
			}
		}},
	}
	asked := make([]uint64, turn)
	b.Run("hit", func(b *testing.B) {
		race(b, func() []uint64 {
			for i := range asked {
				asked[i] = keys[r.IntN(n)]
			}
			return asked
		}, contenders...)
	})
	b.Run("miss", func(b *testing.B) {
		race(b, func() []uint64 {
			for i := range asked {
				asked[i] = r.Uint64() & mask
			}
			return asked
		}, contenders...)
	})
	runtime.KeepAlive(keys)
}

// The filter of the peer has fingerprints of eight bits in buckets of four; ours
// is made for the rate that it has, 8·load/255.
func BenchmarkTable(b *testing.B) {
	const n = 1_000_000
	r := rand.New(rand.NewPCG(1, 2))
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "https://example.org/%016x", r.Uint64())
	}
	ours, err := cuckoo.New(cuckoo.Config{Keys: n, FalsePositive: 0.03})
	if err != nil {
		b.Fatal(err)
	}
	peer := cuckoofilter.NewFilter(n)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := processor()
	for _, k := range keys {
		if err := ours.Insert(keyed.Bytes(k), 0); err != nil {
			b.Fatal(err)
		}
	}
	middle := processor()
	failed := 0
	for _, k := range keys {
		if !peer.Insert(k) {
			failed++
		}
	}
	end := processor()
	b.Run("build", func(b *testing.B) {
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(middle-begin)/n, "cuckoo-ns/key")
		b.ReportMetric(float64(end-middle)/n, "peer-ns/key")
		b.ReportMetric(float64(ours.Stats().Bytes)*8/n, "cuckoo-bits/key")
		b.ReportMetric(float64(len(peer.Encode()))*8/n, "peer-bits/key")
		b.ReportMetric(float64(failed), "peer-failed-keys")
	})
	stranger := make([]byte, 0, 40)
	b.Run("rate", func(b *testing.B) {
		const strangers = 1_000_000
		var us, them int
		for range strangers {
			stranger = fmt.Appendf(stranger[:0], "https://example.com/%016x", r.Uint64())
			if _, ok := ours.Lookup(keyed.Bytes(stranger)); ok {
				us++
			}
			if peer.Lookup(stranger) {
				them++
			}
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(100*float64(us)/strangers, "cuckoo-%")
		b.ReportMetric(100*ours.Stats().FalsePositive, "predicted-%")
		b.ReportMetric(100*float64(them)/strangers, "peer-%")
	})
	asked := make([][]byte, turn)
	values, found := make([]uint64, turn), make([]bool, turn)
	for _, kind := range []string{"hit", "miss"} {
		b.Run(kind, func(b *testing.B) {
			race(b, func() []uint64 {
				for i := range asked {
					if asked[i] = keys[r.IntN(n)]; kind == "miss" {
						asked[i] = append([]byte("x"), asked[i]...)
					}
				}
				return values
			}, contender{"peer", func([]uint64) {
				for _, k := range asked {
					if peer.Lookup(k) {
						sink++
					}
				}
			}}, contender{"lookup", func([]uint64) {
				for _, k := range asked {
					if _, ok := ours.Lookup(keyed.Bytes(k)); ok {
						sink++
					}
				}
			}}, contender{"batch", func([]uint64) { ours.LookupBatch(keyed.ByteStrings(asked), values, found) }})
		})
	}
}
