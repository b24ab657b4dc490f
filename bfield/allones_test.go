package bfield

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// allOnesPlain is q_U as rate.go defines it, subset by subset.
func (w *window) allOnesPlain(set []int) float64 {
	j := len(set)
	q := 0.0
	for v := range uint(1) << j {
		// Windows that see all of U, then those that see the first i of it, and
		// those that see the others.
		total := bits.OnesCount(v)
		p := w.clear[w.nu-(set[j-1]-set[0])][total]
		for i := 1; i < j; i++ {
			first := bits.OnesCount(v & (1<<i - 1))
			d := set[i] - set[i-1]
			p *= w.clear[d][first] * w.clear[d][total-first]
		}
		if total&1 == 0 {
			q += p
		} else {
			q -= p
		}
	}
	return math.Max(q, 0)
}

func TestAllOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		nu := 2 + r.IntN(MaxNu-1)
		w := newWindow(nu, 1+r.IntN(min(MaxKappa, nu)), r.Float64()*0.3)
		j := 1 + r.IntN(min(rateTerms, nu))
		var set []int
		for at := 0; len(set) < j; at++ {
			if r.IntN(nu-at) < j-len(set) {
				set = append(set, at)
			}
		}
		if got, want := w.allOnes(set), w.allOnesPlain(set); math.Abs(got-want) > 1e-11 {
			t.Fatalf("ν %d, bits %v: %g, by definition %g", nu, set, got, want)
		}
	}
}
