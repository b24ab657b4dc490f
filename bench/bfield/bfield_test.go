// Package bfield compares the B-field with a Go map. Each benchmark repeats by
// itself, in turns with its baseline, and reports ratios of medians: run with
// -benchtime 1x.
package bfield

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
)

const rounds = 7

var sink int

// turns runs each function once a round and returns, for each, the median
// nanoseconds of the processor divided by n, and the median of its ratio in
// each round to the one named by base. Other programs take less of the
// processor's time than of the clock's.
func turns(n int, base []int, each ...func()) (times, ratios []float64) {
	all, parts := make([][]float64, len(each)), make([][]float64, len(each))
	for range rounds {
		for i, f := range each {
			runtime.GC() // what others left is not this one's to collect
			begin := processorTime()
			f()
			all[i] = append(all[i], float64(processorTime()-begin)/float64(n))
		}
		for i := range each {
			last := len(all[i]) - 1
			parts[i] = append(parts[i], all[i][last]/all[base[i]][last])
		}
	}
	for i := range each {
		times, ratios = append(times, median(all[i])), append(ratios, median(parts[i]))
	}
	return times, ratios
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// processorTime is how long this process ran, in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkBFieldMap compares a B-field of ν 24, κ 2, k 8 with a presized
// map[uint64]uint16. One processor builds.
func BenchmarkBFieldMap(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			keys, values, strangers := make([]uint64, n), make([]uint64, n), make([]uint64, n)
			for i := range keys {
				keys[i], values[i], strangers[i] = random.Uint64(), random.Uint64N(256), random.Uint64()
			}
			c := bfield.Config{Keys: uint64(n), Values: 256, Nu: 24, Kappa: 2, Hashes: 8, CellsPerKey: 11.53, Workers: 1}
			var m map[uint64]uint16
			var f *bfield.Field
			out, answers := make([]uint64, n), make([]bfield.Answer, n)
			inMap := func(asked []uint64) func() {
				return func() {
					for _, k := range asked {
						if _, ok := m[k]; ok {
							sink++
						}
					}
				}
			}
			inField := func(asked []uint64) func() {
				return func() {
					for _, k := range asked {
						if _, a := f.Lookup(keyed.Number(k)); a == bfield.Found {
							sink++
						}
					}
				}
			}
			inBatch := func(asked []uint64) func() { return func() { f.LookupBatch(keyed.Numbers(asked), out, answers) } }
			for b.Loop() {
				times, ratios := turns(n, []int{0, 0, 2, 2, 2, 5, 5, 5}, func() {
					m = make(map[uint64]uint16, n)
					for i, k := range keys {
						m[k] = uint16(values[i])
					}
				}, func() {
					var err error
					if f, err = bfield.Build(c, keyed.Numbers(keys), values); err != nil {
						b.Fatal(err)
					}
				}, inMap(keys), inField(keys), inBatch(keys), inMap(strangers), inField(strangers), inBatch(strangers))
				for i, name := range []string{"", "build", "", "hit", "batch-hit", "", "miss", "batch-miss"} {
					if name != "" {
						b.ReportMetric(ratios[i], name+"/map")
						b.ReportMetric(times[i], name+"-ns")
					}
				}
				b.ReportMetric(f.Stats().BitsPerKey, "bits/key")
			}
		})
	}
}

// BenchmarkBFieldAlpha looks strangers up until about 10,000 are found, or 2,500
// where they are rare, so that one standard deviation is 1 or 2 %, and compares
// their rate with the formula.
func BenchmarkBFieldAlpha(b *testing.B) {
	row := func(nu, kappa, k int, perKey float64) bfield.Config {
		return bfield.Config{Values: bfield.Codes(nu, kappa), Nu: nu, Kappa: kappa, Hashes: k, CellsPerKey: perKey}
	}
	configs := []bfield.Config{row(16, 1, 12, 17.31), row(24, 2, 8, 11.53), row(46, 2, 10, 14.37), row(20, 3, 7, 9.57), row(14, 4, 5, 7.01)}
	for e := 8; e <= 20; e += 3 {
		configs = append(configs, bfield.Config{Values: 256, FalsePositive: math.Pow(2, -float64(e))})
	}
	for _, c := range configs {
		c.Keys = 1_000_000
		p, err := bfield.NewPlan(c)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("ν%d-κ%d-k%d-α%.3g", p.Nu, p.Kappa, p.Hashes, p.FalsePositive()), func(b *testing.B) {
			random := rand.New(rand.NewPCG(3, 4))
			keys, values := make([]uint64, c.Keys), make([]uint64, c.Keys)
			for i := range keys {
				keys[i], values[i] = random.Uint64(), random.Uint64N(c.Values)
			}
			f, err := bfield.Build(c, keyed.Numbers(keys), values)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				trials := int(10_000 / p.FalsePositive())
				if p.FalsePositive() < 1e-4 {
					trials /= 4
				}
				rate := float64(strangersFound(f, trials)) / float64(trials)
				b.ReportMetric(rate, "α")
				b.ReportMetric(rate/p.FalsePositive(), "α/formula")
				b.ReportMetric(rate/p.PaperFalsePositive(), "α/paper")
				b.ReportMetric(f.Stats().BitsPerKey, "bits/key")
				b.ReportMetric(f.Stats().BitsPerKey/p.PaperBitsPerKey(), "bits/paper")
			}
		})
	}
}

func strangersFound(f *bfield.Field, trials int) int64 {
	var found atomic.Int64
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			random, mine := rand.New(rand.NewPCG(5, uint64(w))), int64(0)
			for range trials / workers {
				if _, a := f.Lookup(keyed.Number(random.Uint64())); a == bfield.Found {
					mine++
				}
			}
			found.Add(mine)
		})
	}
	wg.Wait()
	return found.Load()
}

// BenchmarkBFieldWhole builds fields of 10^7 keys and asks for each: with eight
// keys in a hundred indeterminate in the primary array, and the paper's case
// of URLs with θ = 1000 and α = 2^-32.
func BenchmarkBFieldWhole(b *testing.B) {
	const n = 10_000_000
	values := make([]uint64, n)
	b.Run("numbers-θ256-α2^-8", func(b *testing.B) {
		random := rand.New(rand.NewPCG(6, 7))
		keys := make([]uint64, n)
		for i := range keys {
			keys[i], values[i] = random.Uint64(), random.Uint64N(256)
		}
		for b.Loop() {
			f, err := bfield.Build(bfield.Config{Keys: n, Values: 256, FalsePositive: 1.0 / 256}, keyed.Numbers(keys), values)
			if err != nil {
				b.Fatal(err)
			}
			report(b, f, n, func(i int) (uint64, bfield.Answer) { return f.Lookup(keyed.Number(keys[i])) }, values)
		}
	})
	b.Run("urls-θ1000-α2^-32", func(b *testing.B) {
		random := rand.New(rand.NewPCG(8, 9))
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "https://host%d.example/%x/%d.html", random.IntN(100_000), random.Uint32(), i)
			values[i] = random.Uint64N(1000)
		}
		for b.Loop() {
			f, err := bfield.Build(bfield.Config{Keys: n, Values: 1000, FalsePositive: math.Pow(2, -32)}, keyed.ByteStrings(keys), values)
			if err != nil {
				b.Fatal(err)
			}
			report(b, f, n, func(i int) (uint64, bfield.Answer) { return f.Lookup(keyed.Bytes(keys[i])) }, values)
			b.ReportMetric(f.Stats().BitsPerKey*1e9/8/(1<<30), "GiB-at-10^9")
			b.ReportMetric(math.Log2(f.Plan().FalsePositive()), "log2-α-computed")
			// What the paper's own figures, ν 20, κ 3, k 14, give at this size.
			p, err := bfield.NewPlan(bfield.Config{Keys: n, Values: 1000, Nu: 20, Kappa: 3, Hashes: 14, CellsPerKey: 14.1 / math.Ln2})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(math.Log2(p.FalsePositive()), "log2-α-of-the-paper's-plan")
		}
	})
}

// report asks for all keys and fails unless each answers its value.
func report(b *testing.B, f *bfield.Field, n int, lookup func(i int) (uint64, bfield.Answer), values []uint64) {
	wrong, indeterminate := 0, 0
	for i := range n {
		v, a := lookup(i)
		switch {
		case a == bfield.Indeterminate:
			indeterminate++
		case a != bfield.Found || v != values[i]:
			wrong++
		}
	}
	if wrong > 0 || indeterminate > 0 {
		b.Errorf("of %d keys %d answer wrongly and %d are indeterminate", n, wrong, indeterminate)
	}
	s, p := f.Stats(), f.Plan()
	b.ReportMetric(float64(wrong), "wrong")
	b.ReportMetric(float64(indeterminate), "indeterminate")
	b.ReportMetric(float64(s.Levels), "arrays")
	b.ReportMetric(s.BitsPerKey, "bits/key")
	b.ReportMetric(s.BitsPerKey/p.PaperBitsPerKey(), "bits/paper")
}
