package bfield

import (
	"math"
	"math/rand/v2"
)

// This file computes how often a window of a key that was never inserted shows
// exactly κ ones, or any ones at all.
//
// The paper (section 5b) takes the ν bits of a window for independent. Each is
// wrongly 1 with probability p = q^k, for the part q of the array that is 1.
// The result is the binomial C(ν,κ) p^κ (1−p)^(ν−κ). For κ = 1 that is right.
// For κ ≥ 2 it is too low, because the κ ones of a marker lie together. Ones
// near a one are more frequent. The marker of another key that begins near the
// window's place covers several bits of it at once. This file takes the
// markers as they are. At each place a Poisson number of them begins, with
// mean λ = n·k/(m·κ), each with a random code. For a set V of the window's
// bits
//
//	P(V all 0)  = exp(−λ·Σ_s (1 − C(ν−|V∩window s|, κ)/C(ν, κ)))
//	q_U         = P(U all 1) = Σ_{V⊆U} (−1)^|V| P(V all 0)
//	S_j         = Σ_{|U|=j} q_U^k                 (k windows, nearly independent)
//	P(κ ones)   = Σ_{j≥κ} (−1)^(j−κ) C(j, κ) S_j  (inclusion–exclusion)
//
// where s runs over all places whose windows meet V. The sum is cut where its
// terms no longer count; they fall like those of e^(−νp).

// rateTerms bounds |U|: the subsets of U are gone through one by one.
const rateTerms = 14

// precision is how well a rate is computed. It has the relative size of the
// first term left out, and the number of products spent on one S_j. If all sets
// U take more than that, a sample of them is tried, always the same one.
type precision struct {
	tolerance float64
	work      int
}

var (
	coarse = precision{2e-2, 1 << 18} // for the search of a plan
	fine   = precision{1e-4, 1 << 23} // for the figures that are shown
)

// window is the law of one window of an array.
type window struct {
	nu, kappa int
	// clear[d][c] is the probability that no marker of d places touches c given
	// bits. c is what a window at each of these places shows of them.
	clear [MaxNu + 1][rateTerms + 1]float64
}

// newWindow returns the law for codes (nu, kappa) where each place begins
// lambda markers in the mean.
func newWindow(nu, kappa int, lambda float64) *window {
	w := &window{nu: nu, kappa: kappa}
	for d := range nu + 1 {
		for c := range rateTerms + 1 {
			untouched := 0.0
			if nu-c >= kappa {
				untouched = float64(binomials[nu-c][kappa]) / float64(binomials[nu][kappa])
			}
			w.clear[d][c] = math.Exp(-lambda * float64(d) * (1 - untouched))
		}
	}
	return w
}

// allOnes returns q_U for the set U of bits, in ascending order. It is the sum
// over the subsets V, those of one size t at a time. The probability of V is a
// product over the gaps between bits of U. A factor counts the windows that end
// there, which show i bits of V, and those that begin there, which show t − i. So
// all V with the same i before a gap are added up before it. That takes j²·t
// steps and not j·C(j, t).
func (w *window) allOnes(set []int) float64 {
	j := len(set)
	q := 0.0
	var before [rateTerms + 1]float64 // by i
	for t := range j + 1 {
		at := before[:j+1]
		clear(at)
		at[0] = 1
		if t > 0 {
			at[1] = 1
		}
		for i := 1; i < j; i++ {
			gap := &w.clear[set[i]-set[i-1]]
			// No more than i bits of V can come before the gap, and no more than
			// j − i behind it.
			least, most := max(0, t-(j-i)), min(i, t)
			for c := least; c <= most; c++ {
				at[c] *= gap[c] * gap[t-c]
			}
			if most < t {
				at[most+1] = 0
				most++
			}
			for c := most; c > least; c-- {
				at[c] += at[c-1]
			}
		}
		p := at[t] * w.clear[w.nu-(set[j-1]-set[0])][t]
		if t&1 == 0 {
			q += p
		} else {
			q -= p
		}
	}
	return math.Max(q, 0)
}

// sum returns S_j among the first `bits` bits of the window.
func (w *window) sum(j, bits, k, work int) float64 {
	s := 0.0
	each := j << (j + 1)
	if float64(binomials[bits-1][j-1])*float64(each) <= float64(work) {
		// Only the distances between the bits count. So these are sets that begin at
		// 0, times the places that they can be moved to.
		set := make([]int, j)
		var try func(i int)
		try = func(i int) {
			if i == j {
				s += float64(bits-set[j-1]) * math.Pow(w.allOnes(set), float64(k))
				return
			}
			for at := set[i-1] + 1; at < bits; at++ {
				set[i] = at
				try(i + 1)
			}
		}
		try(1)
		return s
	}
	random := rand.New(rand.NewPCG(uint64(bits), uint64(j)))
	tries := max(64, work/each)
	set := make([]int, 0, j)
	for range tries {
		set = set[:0]
		// Selection sampling, ascending (Knuth, volume 2, algorithm S).
		for at := 0; len(set) < j; at++ {
			if random.IntN(bits-at) < j-len(set) {
				set = append(set, at)
			}
		}
		s += math.Pow(w.allOnes(set), float64(k))
	}
	return s / float64(tries) * float64(binomials[bits][j])
}

// exactly returns the probability that the AND of k windows shows exactly r of
// its first `bits` bits as ones.
func (w *window) exactly(r, bits, k int, to precision) float64 {
	p, sign := 0.0, 1.0
	for j := r; j <= bits && j <= rateTerms; j++ {
		s := 1.0
		if j > 0 {
			s = w.sum(j, bits, k, to.work)
		}
		term := float64(binomials[j][r]) * s
		p += sign * term
		sign = -sign
		if term <= to.tolerance*math.Abs(p) {
			break
		}
	}
	return math.Min(math.Max(p, 0), 1)
}
