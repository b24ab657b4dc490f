// Package ribbon measures bfield/ribbon beside the binary fuse filters of
// FastFilter/xorfilter, the fastest and smallest of Go's static filters.
package ribbon

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/FastFilter/xorfilter"

	"github.com/syncd-io/syncd/bench/bfield/paired"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

var sizes = []int{1_000_000, 10_000_000}

func draw(n, bits int) (keys, values []uint64) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	keys, values = make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i], values[i] = r.Uint64(), r.Uint64()>>(64-bits)
	}
	return keys, values
}

func must[T any](b *testing.B) func(t T, err error) T {
	return func(t T, err error) T {
		if err != nil {
			b.Fatal(err)
		}
		return t
	}
}

// BenchmarkBuild builds retrieval of 8-bit values by one goroutine, beside
// BinaryFuse8.
func BenchmarkBuild(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("r=8/n=%d", n), func(b *testing.B) {
			keys, values := draw(n, 8)
			var r *ribbon.Retrieval
			paired.Run(b, n, func() {
				r = must[*ribbon.Retrieval](b)(ribbon.BuildRetrieval(ribbon.Config{ValueBits: 8, Workers: 1}, keyed.Numbers(keys), values))
			}, func() {
				must[*xorfilter.BinaryFuse8](b)(xorfilter.PopulateBinaryFuse8(slices.Clone(keys)))
			})
			b.ReportMetric(100*r.Stats().Overhead, "%overhead")
		})
		b.Run(fmt.Sprintf("standard-f=8/n=%d", n), func(b *testing.B) {
			keys, _ := draw(n, 8)
			var f *ribbon.Filter
			paired.Run(b, n, func() {
				f = must[*ribbon.Filter](b)(ribbon.BuildFilter(ribbon.Config{FingerprintBits: 8, Workers: 1}, keyed.Numbers(keys)))
			}, func() {
				must[*xorfilter.BinaryFuse8](b)(xorfilter.PopulateBinaryFuse8(slices.Clone(keys)))
			})
			b.ReportMetric(float64(f.Stats().Bits)/float64(n), "bits/key")
			b.ReportMetric(100*falsePositives(f), "%falsely")
		})
	}
}

// falsePositives is the part of 10^7 strangers that a filter accepts.
func falsePositives(f *ribbon.Filter) float64 {
	const strangers = 10_000_000
	r := rand.New(rand.NewPCG(5, 6))
	asked, found := make([]uint64, 1000), make([]bool, 1000)
	hits := 0
	for range strangers / len(asked) {
		for i := range asked {
			asked[i] = r.Uint64()
		}
		f.LookupBatch(keyed.Numbers(asked), found)
		for _, yes := range found {
			if yes {
				hits++
			}
		}
	}
	return float64(hits) / strangers
}

var sink int

// BenchmarkLookup looks up keys that are there, beside one Contains after the
// other of the binary fuse filter of the same width.
func BenchmarkLookup(b *testing.B) {
	for _, n := range sizes {
		for _, width := range []int{8, 16} {
			keys, values := draw(n, width)
			asked := slices.Clone(keys)
			rand.New(rand.NewPCG(3, 4)).Shuffle(n, func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
			asked = asked[:min(n, 4_000_000)]
			out := make([]uint64, 4096) // what one call answers
			r := must[*ribbon.Retrieval](b)(ribbon.BuildRetrieval(ribbon.Config{ValueBits: width}, keyed.Numbers(keys), values))
			contains := fuse(b, width, keys)
			fused := func() {
				for _, k := range asked {
					if contains(k) {
						sink++
					}
				}
			}
			b.Run(fmt.Sprintf("batch/r=%d/n=%d", width, n), func(b *testing.B) {
				paired.Run(b, len(asked), func() {
					for part := range slices.Chunk(asked, len(out)) {
						r.LookupBatch(keyed.Numbers(part), out)
						sink += int(out[0])
					}
				}, fused)
			})
			b.Run(fmt.Sprintf("single/r=%d/n=%d", width, n), func(b *testing.B) {
				paired.Run(b, len(asked), func() {
					for _, k := range asked {
						sink += int(r.Lookup(keyed.Number(k)))
					}
				}, fused)
			})
		}
	}
}

// fuse builds the peer's filter of a width. The two are different types, so
// that Contains is called directly within each.
func fuse(b *testing.B, width int, keys []uint64) (contains func(uint64) bool) {
	keys = slices.Clone(keys)
	if width == 8 {
		return must[*xorfilter.BinaryFuse8](b)(xorfilter.PopulateBinaryFuse8(keys)).Contains
	}
	return must[*xorfilter.BinaryFuse[uint16]](b)(xorfilter.NewBinaryFuse[uint16](keys)).Contains
}
