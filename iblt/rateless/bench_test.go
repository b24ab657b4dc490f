package rateless

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func randomPairs(r *rand.Rand, n int) []Pair {
	pairs := make([]Pair, n)
	for i := range pairs {
		pairs[i] = randomPair(r)
	}
	return pairs
}

// median is in nanoseconds: on a busy machine it stays where a mean would not.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2])
}

func BenchmarkMapping(b *testing.B) {
	w := expand(Key{})
	var cells [batch]uint32
	steps := 0
	k := Index(1)
	for b.Loop() {
		k++
		for m := w.start(k); m.at < 1<<14; {
			steps += m.fill(w.tables, cells[:], 1<<14)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
	b.ReportMetric(float64(steps)/float64(b.N), "steps/pair")
}

// BenchmarkDecode decodes with a local index of a million pairs, cells in one
// burst. "twin" divides and looks up cell by cell instead of in rounds.
func BenchmarkDecode(b *testing.B) {
	r := rand.New(rand.NewPCG(2, 1))
	local := make(map[Index]Checksum, 1<<20)
	common := make([]Pair, 0, 1<<20)
	for len(local) < 1_000_000 {
		k := randomIndex(r)
		local[k] = randomChecksum(r, k)
		common = append(common, Pair{Index: k, Checksum: local[k]})
	}
	for _, d := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("d=%d", d), func(b *testing.B) {
			m := d*12/10 + 100
			theirs, ours := NewSketch(Key{}, m), NewSketch(Key{}, m)
			fresh := randomPairs(r, d/4)
			for _, p := range fresh {
				theirs.Add(p)
			}
			for i := range d - d/4 {
				p := common[i*len(common)/d]
				ours.Add(p)
				if i%3 != 0 {
					p.Checksum = randomChecksum(r, p.Index)
					theirs.Add(p)
				}
			}
			lookup := func(indices []Index, sums []Checksum) error {
				for i, k := range indices {
					sums[i] = local[k]
				}
				return nil
			}
			cells := theirs.Prefix(m)
			var spent [2][]time.Duration
			for b.Loop() {
				for i := range spent {
					dec := NewDecoder(ours, lookup)
					start := time.Now()
					err := dec.take(cells)
					if err == nil && i == 0 {
						err = dec.peel()
					} else if err == nil {
						err = dec.peelSingly()
					}
					if err != nil {
						b.Fatal(err)
					}
					spent[i] = append(spent[i], time.Since(start))
					if !dec.Done() || len(dec.Differences()) != d {
						b.Fatal("not decoded")
					}
				}
			}
			rounds, singly := median(spent[0]), median(spent[1])
			b.ReportMetric(rounds/float64(d), "ns/difference")
			b.ReportMetric(singly/float64(d), "ns/difference-twin")
			b.ReportMetric(rounds/singly, "of-twin")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkEstimate(b *testing.B) {
	s := diverge(rand.New(rand.NewPCG(1, 1)), Key{}, 128, 0, 250, 250, 500)
	theirs, ours := s.theirs.Estimator(), s.ours.Estimator()
	for b.Loop() {
		Estimate(theirs, ours)
	}
}
