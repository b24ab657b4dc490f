package ribbon

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// BenchmarkTwoLayers compares a retrieval of two layers with one of as many as it
// takes: space, build and look-ups, single ones.
func BenchmarkTwoLayers(b *testing.B) {
	for _, n := range sizes {
		keys, values := draw(n, 8)
		build := func(two bool) *ribbon.Retrieval {
			c := ribbon.Config{ValueBits: 8, Workers: 1, TwoLayers: two}
			return must[*ribbon.Retrieval](b)(ribbon.BuildRetrieval(c, keyed.Numbers(keys), values))
		}
		two, all := build(true), build(false)
		b.Run(fmt.Sprintf("build/n=%d", n), func(b *testing.B) {
			paired(b, n, func() { build(true) }, func() { build(false) })
			b.ReportMetric(100*two.Stats().Overhead, "%overhead")
			b.ReportMetric(100*all.Stats().Overhead, "%overhead-all")
			b.ReportMetric(float64(all.Stats().Levels), "levels-all")
		})
		b.Run(fmt.Sprintf("hit/n=%d", n), func(b *testing.B) {
			paired(b, n, func() { ask(two, keys) }, func() { ask(all, keys) })
		})
	}
}

func ask(r *ribbon.Retrieval, keys []uint64) {
	for _, k := range keys {
		sum += r.Lookup(keyed.Number(k))
	}
}

// sum keeps look-ups from being left out.
var sum uint64
