package ribbon

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// skews are distributions of values.
var skews = []struct {
	name string
	draw func(r *rand.Rand) uint64
}{
	{"geometric", func(r *rand.Rand) uint64 { return uint64(bits.TrailingZeros64(r.Uint64() | 1<<63)) }},
	{"zipf256", func(r *rand.Rand) uint64 { return rand.NewZipf(r, 1.5, 1, 255).Uint64() }},
	{"90%ofOneOf256", func(r *rand.Rand) uint64 {
		if r.IntN(10) > 0 {
			return 0
		}
		return r.Uint64N(256)
	}},
	{"flat256", func(r *rand.Rand) uint64 { return r.Uint64N(256) }},
}

// Values of variable length beside values of one width: bits a key of both, of the
// entropy and of the codewords, and the times of look-ups.
func BenchmarkCoded(b *testing.B) {
	for _, skew := range skews {
		for _, n := range sizes[:1] {
			b.Run(fmt.Sprintf("%s/n=%d", skew.name, n), func(b *testing.B) {
				r := rand.New(rand.NewPCG(2, uint64(n)))
				keys, values, largest := make([]uint64, n), make([]uint64, n), uint64(1)
				counts := map[uint64]float64{}
				for i := range keys {
					keys[i], values[i] = r.Uint64(), skew.draw(r)
					counts[values[i]]++
					largest = max(largest, values[i])
				}
				entropy := 0.0
				for _, c := range counts {
					entropy -= c / float64(n) * math.Log2(c/float64(n))
				}
				c := must[*ribbon.Coded](b)(ribbon.BuildCoded(ribbon.Config{}, nil, keyed.Numbers(keys), values))
				fixed := must[*ribbon.Retrieval](b)(ribbon.BuildRetrieval(ribbon.Config{ValueBits: bits.Len64(largest)}, keyed.Numbers(keys), values))
				got := make([]uint64, n)
				paired(b, n, func() { c.LookupBatch(keyed.Numbers(keys), got) }, func() { fixed.LookupBatch(keyed.Numbers(keys), got) })
				b.ReportMetric(entropy, "bits-entropy")
				b.ReportMetric(c.CodeBits(), "bits-code")
				b.ReportMetric(float64(c.Stats().Bits)/float64(n), "bits-coded")
				b.ReportMetric(float64(fixed.Stats().Bits)/float64(n), "bits-fixed")
			})
		}
	}
}
