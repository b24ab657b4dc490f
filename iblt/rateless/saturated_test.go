package rateless

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// lowerBound is what likeliest promises of saturated samples, found by trying:
// the least d whose likelihood is within half a unit of the largest.
func lowerBound(samples []sample) float64 {
	const steps, most = 64, 30 * 64 // an octave, from 2^-2 to 2^30
	best := math.Inf(-1)
	for i := -2 * steps; i <= most; i++ {
		best = max(best, likelihood(samples, math.Exp2(float64(i)/steps)))
	}
	for i := -2 * steps; ; i++ {
		if d := math.Exp2(float64(i) / steps); likelihood(samples, d) >= best-0.5 {
			return d
		}
	}
}

// TestLowerBoundWhenSaturated: where nearly all that can differ does, and d is
// not bounded above, the estimate is the lower bound to within half an octave.
func TestLowerBoundWhenSaturated(t *testing.T) {
	const seed = 17
	r := rand.New(rand.NewPCG(seed, 0))
	cases := map[string][]sample{}
	zero := make(Estimator, EstimatorSize)
	for name, size := range map[string]int{"all bits": EstimatorSize, "half of the bits": EstimatorSize / 2, "160 bits": 20, "one octave": anOctave / 8} {
		full := make(Estimator, size)
		for i := range full {
			full[i] = 0xff
		}
		cases[name+" differ"] = compare(nil, full, zero)
		// As of very many differences: half of the bits.
		random := make(Estimator, size)
		for i := range random {
			random[i] = byte(r.Uint32())
		}
		cases["random, "+name] = compare(nil, random, zero)
	}
	for _, cells := range []int{2, 3, 10, 32, 100, 128, 1000, 10_000} {
		var seen tally
		var samples []sample
		for j := range cells {
			seen.add(j, false)
		}
		at := 0
		for _, b := range seen {
			if at > 0 {
				samples = append(samples, sample{missing: theTables().missing(at + int(b.total-1)/2), differ: float64(b.total)})
			}
			at += int(b.total)
		}
		cases[fmt.Sprintf("%d cells differ", cells)] = samples
	}
	saturated := 0
	for name, samples := range cases {
		d, bounded := likeliest(samples)
		if bounded {
			continue
		}
		saturated++
		want := lowerBound(samples)
		if off := math.Abs(math.Log2(d / want)); !(off < 0.5) {
			t.Errorf("%s: %.1f, and the bound is %.1f: %.2f octaves off", name, d, want, off)
		}
	}
	if saturated < 12 {
		t.Errorf("only %d of %d samples do not bound d (seed %d)", saturated, len(cases), seed)
	}
}
