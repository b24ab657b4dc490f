package bfield

import (
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/nested"
)

// BenchmarkNested compares a nested field with one B-field, for 10^6 keys, α 2^-8 and
// values of which some are frequent. One processor builds.
func BenchmarkNested(b *testing.B) {
	const n, alpha = 1_000_000, 1.0 / 256
	for _, law := range []struct {
		name string
		draw func(r *rand.Rand) uint64
	}{
		{"nine-tenths", func(r *rand.Rand) uint64 {
			if r.IntN(10) > 0 {
				return 0
			}
			return r.Uint64N(256)
		}},
		{"geometric", func(r *rand.Rand) uint64 { return min(uint64(r.ExpFloat64()*1.4427), 255) }},
	} {
		b.Run(law.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			keys, values, strangers := make([]uint64, n), make([]uint64, n), make([]uint64, n)
			most := uint64(0)
			for i := range keys {
				keys[i], values[i], strangers[i] = r.Uint64(), law.draw(r), r.Uint64()
				most = max(most, values[i])
			}
			var one *bfield.Field
			var chain *nested.Field
			out, answers, found := make([]uint64, n), make([]bfield.Answer, n), make([]bool, n)
			single := func(asked []uint64) func() {
				return func() {
					for _, k := range asked {
						if _, a := one.Lookup(keyed.Number(k)); a == bfield.Found {
							sink++
						}
					}
				}
			}
			chained := func(asked []uint64) func() {
				return func() {
					for _, k := range asked {
						if _, ok := chain.Lookup(keyed.Number(k)); ok {
							sink++
						}
					}
				}
			}
			batches := func(asked []uint64) (func(), func()) {
				return func() { one.LookupBatch(keyed.Numbers(asked), out, answers) },
					func() { chain.LookupBatch(keyed.Numbers(asked), out, found) }
			}
			batchHit, chainedHit := batches(keys)
			batchMiss, chainedMiss := batches(strangers)
			for b.Loop() {
				times, ratios := turns(n, []int{0, 0, 2, 2, 4, 4, 6, 6, 8, 8}, func() {
					var err error
					c := bfield.Config{Keys: n, Values: most + 1, FalsePositive: alpha, Workers: 1}
					if one, err = bfield.Build(c, keyed.Numbers(keys), values); err != nil {
						b.Fatal(err)
					}
				}, func() {
					var err error
					if chain, err = nested.Build(nested.Config{FalsePositive: alpha, Workers: 1}, keyed.Numbers(keys), values); err != nil {
						b.Fatal(err)
					}
				}, single(keys), chained(keys), batchHit, chainedHit, single(strangers), chained(strangers), batchMiss, chainedMiss)
				for i, name := range []string{"build", "hit", "batch-hit", "miss", "batch-miss"} {
					b.ReportMetric(ratios[2*i+1], name+"/one")
					b.ReportMetric(times[2*i+1], name+"-ns")
				}
				b.ReportMetric(float64(chain.Stats().Bits)/n, "bits/key")
				b.ReportMetric(one.Stats().BitsPerKey, "bits/key-one")
			}
		})
	}
}
