package iblt

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkAddAll sets sketching a set of n pairs beside reading the pairs and
// no more (the sum of their fields, bound by the memory), and beside an Add of
// each on one processor.
func BenchmarkAddAll(b *testing.B) {
	pairs := randomPairs(rand.New(rand.NewPCG(1, 1)), 10_000_000)
	for _, n := range []int{1_000_000, 10_000_000} {
		for _, m := range []int{1 << 14, 1 << 17} {
			b.Run(fmt.Sprintf("n=%d/M=%d", n, m), func(b *testing.B) {
				var spent [3][]time.Duration
				pairs := pairs[:n]
				one := pairs[:1_000_000] // an Add takes as long however many follow
				var read uint64
				for b.Loop() {
					start := time.Now()
					for i := range pairs {
						read += uint64(pairs[i].Index) + uint64(pairs[i].Checksum)
					}
					spent[0] = append(spent[0], time.Since(start))

					start = time.Now()
					if err := NewSketch(Key{}, m).AddAll(sequence(pairs, nil)); err != nil {
						b.Fatal(err)
					}
					spent[1] = append(spent[1], time.Since(start))

					start = time.Now()
					s := NewSketch(Key{}, m)
					for _, p := range one {
						s.Add(p)
					}
					spent[2] = append(spent[2], time.Since(start))
				}
				if read == 0 {
					b.Fatal("nothing was read")
				}
				b.ReportMetric(median(spent[0])/float64(n), "ns/pass")
				b.ReportMetric(median(spent[1])/float64(n), "ns/pair")
				b.ReportMetric(median(spent[2])/float64(len(one)), "ns/add")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
