package iblt

import (
	"fmt"
	"math"
)

// waterfall is how a listing's failures fall with the cells near the threshold:
// P(fail) = Φ(−z) with z = ((m/n − c_k)·√n − shift·n^(−1/6))/spread. The form
// is that of Dembo and Montanari, "Finite size scaling for the core of large
// random hypergraphs" (2008). The numbers are fits to simulations with n = 24
// to 16,000, rounded to the side of more cells.
var waterfall = map[int]struct{ shift, spread float64 }{
	3: {1.1, 0.72}, 4: {1.05, 0.65}, 5: {1.2, 0.67}, 6: {1.3, 0.72}, 7: {1.45, 0.76},
	8: {1.65, 0.82}, 9: {1.85, 0.85}, 10: {2.0, 0.92},
}

const (
	// smallCore is the largest number of keys whose common failures are
	// counted one by one; more is the waterfall's.
	smallCore = 20
	// leastHashes to sizingHashes are what ConfigFor chooses from.
	leastHashes, sizingHashes = 3, 10
)

// ConfigFor returns the configuration, without a Seed, of the smallest table
// that lists so many differences completely. The table fails to list them with
// at most the given probability. ErrTableConfig: the probability is not
// between 0 and 1, or no table is large enough.
//
// The configuration is for Subtables. It sums two ways to fail. The first is a
// small set of keys, two as a rule, that share all their cells (Theorem 1).
// The expected number of such sets bounds it. The second is a 2-core of a
// constant part of all keys, which appears near the threshold c_k. Both
// together are an upper bound for up to 20 differences, and an estimate
// beyond, held against simulations.
func ConfigFor(differences int, failure float64) (TableConfig, error) {
	if differences < 0 || !(failure > 0 && failure < 1) {
		return TableConfig{}, fmt.Errorf("size a table for %d differences and a failure probability of %v: neither may be negative, the probability must lie between 0 and 1: %w", differences, failure, ErrTableConfig)
	}
	var best TableConfig
	for k := leastHashes; k <= sizingHashes; k++ {
		threshold := TableConfig{Hashes: k}.Threshold()
		chance := func(size int) float64 { return listingFailure(differences, k, size, threshold) }
		// The cells of a subtable: double until enough, then halve the gap.
		high := 1
		for ; chance(high) > failure; high *= 2 {
			if high*k > MaxTableCells {
				break
			}
		}
		low := high / 2 // too few, or zero
		for high-low > 1 {
			if middle := (low + high) / 2; chance(middle) > failure {
				low = middle
			} else {
				high = middle
			}
		}
		if cells := high * k; cells <= MaxTableCells && (best.Cells == 0 || cells < best.Cells) {
			best = TableConfig{Cells: cells, Hashes: k}
		}
	}
	if best.Cells == 0 {
		return best, fmt.Errorf("size a table for %d differences: it would have more than %d cells: %w", differences, MaxTableCells, ErrTableConfig)
	}
	return best, nil
}

// listingFailure estimates the probability that n keys cannot be listed from k
// subtables of size cells each. threshold is c_k.
func listingFailure(n, k, size int, threshold float64) float64 {
	small := smallCores(n, k, size)
	if n <= smallCore {
		return small // all sets of keys are counted
	}
	w, root := waterfall[k], math.Sqrt(float64(n))
	ratio := float64(size) * float64(k) / float64(n)
	z := ((ratio-threshold)*root - w.shift*math.Pow(float64(n), -1.0/6)) / w.spread
	return small + math.Erfc(z/math.Sqrt2)/2
}

// smallCores is the expected number of sets of up to smallCore keys of which
// no key is alone in a cell. The k subtables are independent; in each, j keys
// leave no cell with one key alone with probability
//
//	q_j = j!/size^j · [x^j] (e^x − x)^size
//
// whose coefficients come from the recurrence for powers of a series. From
// where the terms grow with j, the sets belong to the waterfall.
func smallCores(n, k, size int) float64 {
	b := float64(size)
	most := min(n, smallCore)
	// Series in x/size: f is e^x − x, g its power.
	var f, g [smallCore + 1]float64
	f[0], g[0] = 1, 1
	term := 1.0
	for i := 1; i <= most; i++ {
		term /= float64(i) * b
		if i > 1 {
			f[i] = term
		}
	}
	sum, choose, factorial, last := 0.0, float64(n), 1.0, math.Inf(1)
	for j := 1; j <= most; j++ {
		for i := 1; i <= j; i++ {
			g[j] += (b*float64(i) - float64(j-i)) * f[i] * g[j-i] / float64(j)
		}
		if j == 1 {
			continue
		}
		choose *= float64(n-j+1) / float64(j)
		factorial *= float64(j)
		expected := choose * math.Pow(factorial*g[j], float64(k))
		if expected > last && n > smallCore {
			break
		}
		sum += expected
		last = expected
	}
	return sum
}
