package bfield

import (
	"math/bits"
	"math/rand/v2"
)

// For large κ the rates come from a simulated array: markers with random codes
// at random places, as inclusion–exclusion has them. Rates far below one in the
// number of trials are reached by splitting: a population of windows is ANDed
// with k−1 further windows, and after each the survivors, which still have κ
// ones, are copied until they are as many as before. The product of the parts
// that survived is an unbiased estimate. The copies descend from few windows in
// the end, so it scatters: its standard deviation was 2 % at 2^-12 and 4 % at
// 2^-19 (ν 24, κ 5), 12 % at 2^-32 and 25 % at 2^-48 (ν 53, κ 9; each over
// twelve seeds). The generator's seed is fixed: a plan is the same everywhere
// and always.

// simulated is an array at a given load.
type simulated struct {
	nu, kappa  int
	places     uint64
	population int
	words      []uint64
	random     *rand.Rand
}

func newSimulated(nu, kappa int, lambda float64, to precision) *simulated {
	s := &simulated{
		nu: nu, kappa: kappa, places: uint64(to.work) / 8, population: to.work / 64,
		random: rand.New(rand.NewPCG(uint64(nu), uint64(kappa))),
	}
	s.words = make([]uint64, s.places/64+2)
	for range int(lambda*float64(s.places) + 0.5) {
		at, code := s.random.Uint64N(s.places), codeOf(s.random.Uint64N(binomials[nu][kappa]), nu, kappa)
		s.words[at/64] |= code << (at % 64)
		s.words[at/64+1] |= code >> (64 - at%64)
	}
	return s
}

func (s *simulated) draw() uint64 {
	at := s.random.Uint64N(s.places)
	return (s.words[at/64]>>(at%64) | s.words[at/64+1]<<(64-at%64)) & (^uint64(0) >> (64 - s.nu))
}

// falsePositive is the probability that the AND of k windows has κ ones.
func (s *simulated) falsePositive(k int) float64 {
	alive := make([]uint64, s.population)
	for i := range alive {
		alive[i] = ^uint64(0)
	}
	rate := 1.0
	for step := range k {
		left, exact := 0, 0
		for _, w := range alive {
			w &= s.draw()
			n := bits.OnesCount64(w)
			if n >= s.kappa {
				alive[left] = w
				left++
			}
			if n == s.kappa {
				exact++
			}
		}
		if step == k-1 {
			return rate * float64(exact) / float64(s.population)
		}
		if left == 0 {
			return 0
		}
		rate *= float64(left) / float64(s.population)
		for i := left; i < s.population; i++ {
			alive[i] = alive[i%left]
		}
	}
	return rate
}

// indeterminate is the probability that the AND of k windows has ones among
// ν−κ of its bits.
func (s *simulated) indeterminate(k int) float64 {
	extra := 0
	others := uint64(1)<<(s.nu-s.kappa) - 1
	for range s.population {
		w := others
		for range k {
			w &= s.draw()
		}
		if w != 0 {
			extra++
		}
	}
	return float64(extra) / float64(s.population)
}
