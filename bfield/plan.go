package bfield

import (
	"errors"
	"fmt"
	"math"
)

// ErrConfig is returned for a configuration that no field can have.
var ErrConfig = errors.New("bfield: impossible configuration")

// Config says what a field is for. Keys, Values and FalsePositive are needed;
// all else may stay zero.
type Config struct {
	// Keys is n, the number of keys planned for, up to MaxKeys. A field
	// takes more, at a higher rate of false positives.
	Keys uint64

	// Values is θ: values go from 0 to Values−1.
	Values uint64

	// FalsePositive is α, the wanted probability that a key which was never
	// inserted is answered with a value. It is between MinFalsePositive and 1/2.
	FalsePositive float64

	// Seed of the hashes. Fields with different seeds err on different keys.
	Seed uint64

	// Workers is how many goroutines may build at once. 0 stands for one for each
	// processor, and MaxWorkers is the most. It changes the speed, never the
	// result.
	Workers int

	// Nu, Kappa, Hashes and CellsPerKey are ν, κ, k and m/n, which NewPlan
	// chooses unless all four are given. Then FalsePositive may be zero.
	Nu, Kappa, Hashes int
	CellsPerKey       float64
}

// Plan is the shape of a field's primary array: what the paper's steps 1 and 2
// choose. It does not depend on the keys.
type Plan struct {
	Keys, Values      uint64
	Nu, Kappa, Hashes int
	// CellsPerKey is m/n; each cell of the paper's m is κ bits.
	CellsPerKey float64

	// unasked is how many windows are ANDed before the ones are counted.
	unasked int
}

// NewPlan chooses ν, κ, k and m for a configuration. The true rate of false
// positives, not the paper's, is then the wanted one with the fewest bits a
// key. Among plans within 2 % of that, it takes the one that reads fewest
// windows.
//
// It fails with ErrConfig if the configuration is impossible.
func NewPlan(c Config) (Plan, error) {
	if err := c.check(); err != nil {
		return Plan{}, err
	}
	if c.Nu != 0 {
		return Plan{Keys: c.Keys, Values: c.Values, Nu: c.Nu, Kappa: c.Kappa, Hashes: c.Hashes, CellsPerKey: c.CellsPerKey}, nil
	}
	var candidates []Plan
	for kappa, found := 1, 0; kappa <= MaxKappa && found < 2; kappa++ {
		nu := shortest(c.Values, kappa)
		if nu == 0 {
			continue
		}
		found++
		candidates = append(candidates, plansWith(c, nu, kappa)...)
	}
	best := -1
	for i, p := range candidates {
		if best < 0 || p.cost() < candidates[best].cost() {
			best = i
		}
	}
	if best < 0 {
		return Plan{}, fmt.Errorf("plan for %d values at a false positive rate of %g: %w", c.Values, c.FalsePositive, ErrConfig)
	}
	p := candidates[best]
	p.fit(c.FalsePositive, fine)
	// Processors differ in the last bits of what they fit. But fields of one Config must have
	// one plan wherever they are built: Union needs that, and saved forms are compared.
	p.CellsPerKey = min(math.Ceil(p.CellsPerKey*cellSteps)/cellSteps, MaxCellsPerKey)
	return p, nil
}

// cellSteps are how many steps m/n has between whole numbers. Each is one part in a
// million of a common plan.
const cellSteps = 1 << 16

func (c Config) check() error {
	switch {
	case c.Keys > MaxKeys:
		return fmt.Errorf("plan for %d keys: at most %d: %w", c.Keys, uint64(MaxKeys), ErrConfig)
	case c.Values < 1 || c.Values > Codes(MaxNu, MaxKappa):
		return fmt.Errorf("plan for %d values: from 1 to %d: %w", c.Values, Codes(MaxNu, MaxKappa), ErrConfig)
	case c.Workers < 0 || c.Workers > MaxWorkers:
		return fmt.Errorf("%d workers: from 0 to %d: %w", c.Workers, MaxWorkers, ErrConfig)
	}
	if c.Nu != 0 || c.Kappa != 0 || c.Hashes != 0 || c.CellsPerKey != 0 {
		if Codes(c.Nu, c.Kappa) < c.Values || c.Kappa > MaxKappa || c.Hashes < 1 || c.Hashes > MaxHashes ||
			!(c.CellsPerKey >= float64(c.Hashes)/MaxLoad && c.CellsPerKey <= MaxCellsPerKey) {
			return fmt.Errorf("ν %d, κ %d, k %d and m/n %g for %d values: codes must suffice, κ ≤ %d, 1 ≤ k ≤ %d, k/%d ≤ m/n ≤ %d: %w",
				c.Nu, c.Kappa, c.Hashes, c.CellsPerKey, c.Values, MaxKappa, MaxHashes, MaxLoad, MaxCellsPerKey, ErrConfig)
		}
		return nil
	}
	if !(c.FalsePositive >= MinFalsePositive && c.FalsePositive <= 0.5) {
		return fmt.Errorf("a false positive rate of %g: from %.2g to 0.5: %w", c.FalsePositive, MinFalsePositive, ErrConfig)
	}
	return nil
}

// shortest returns the least ν with C(ν, κ) ≥ values, or 0.
func shortest(values uint64, kappa int) int {
	for nu := kappa; nu <= MaxNu; nu++ {
		if binomials[nu][kappa] >= values {
			return nu
		}
	}
	return 0
}

// plansWith returns plans for the numbers of hashes near the best one.
func plansWith(c Config, nu, kappa int) []Plan {
	// The paper's formulas as a start: α = C(ν, κ) p^κ and k = log2(1/p). The
	// correction asks for more hashes as κ grows.
	least := max(1, int(-math.Log2(c.FalsePositive/float64(c.Values))/float64(kappa)))
	var plans []Plan
	for k := least; k <= min(MaxHashes, least+1+kappa/2); k++ {
		p := Plan{Keys: c.Keys, Values: c.Values, Nu: nu, Kappa: kappa, Hashes: k}
		if p.fit(c.FalsePositive, coarse) {
			plans = append(plans, p)
		}
	}
	return plans
}

// fit sets CellsPerKey to the least that keeps the rate at alpha, but not below
// where m·κ/(1−β) is least. There a smaller primary array would only make the
// others larger.
func (p *Plan) fit(alpha float64, to precision) bool {
	low := p.leanest()
	miss := func(x float64) float64 {
		p.CellsPerKey = x
		return math.Log(max(p.falsePositive(to), math.SmallestNonzeroFloat64) / alpha)
	}
	yLow := miss(low)
	if yLow <= 0 {
		return true
	}
	high, yHigh := low, yLow
	for yHigh > 0 {
		low, yLow = high, yHigh
		// α goes with p^κ, and p with (1−e^(−k/x))^k ≈ 2^(−k): about the slope.
		high *= max(1.02, math.Exp(1.2*yHigh/(float64(p.Kappa*p.Hashes)*math.Ln2)))
		if high > MaxCellsPerKey {
			return false
		}
		yHigh = miss(high)
	}
	// The logarithm of the rate falls smoothly with m between the two: regula
	// falsi, Illinois' way.
	for side := 0; ; {
		if high-low < 1e-6*high {
			p.CellsPerKey = high
			return true
		}
		x := low + (high-low)*yLow/(yLow-yHigh)
		y := miss(x)
		switch {
		case math.Abs(y) <= to.tolerance:
			return true
		case y > 0:
			low, yLow = x, y
			if side == 1 {
				yHigh /= 2
			}
			side = 1
		default:
			high, yHigh = x, y
			if side == -1 {
				yLow /= 2
			}
			side = -1
		}
	}
}

// leanest returns the m/n with the least m·κ/(1−β). It is a ternary search
// between arrays that are 1 % and 90 % ones.
func (p Plan) leanest() float64 {
	size := func(x float64) float64 {
		p.CellsPerKey = x
		return p.PaperBitsPerKey()
	}
	low, high := -float64(p.Hashes)/math.Log(0.1), -float64(p.Hashes)/math.Log(0.99)
	for high-low > 1e-4*high {
		a, b := low+(high-low)/3, high-(high-low)/3
		if size(a) < size(b) {
			high = b
		} else {
			low = a
		}
	}
	return min(high, MaxCellsPerKey)
}

// cost is what plans are compared by: bits a key, and 1 % for each two windows
// more that a look-up reads. So plans within a few per cent differ by their speed.
func (p Plan) cost() float64 {
	return p.PaperBitsPerKey() * (1 + 0.005*float64(p.Hashes))
}

// lambda is the mean number of markers that begin at a place of the full array.
func (p Plan) lambda() float64 {
	return float64(p.Hashes) / (p.CellsPerKey * float64(p.Kappa))
}

// FalsePositive returns α, the probability that a key which was never inserted
// is answered with a value when all n keys are in. It is summed as in rate.go.
// Markers use all C(ν, κ) codes alike, and a code beyond those of the θ values
// is no answer. Hence the factor θ/C(ν, κ).
func (p Plan) FalsePositive() float64 { return p.falsePositive(fine) }

func (p Plan) falsePositive(to precision) float64 {
	valid := float64(p.Values) / float64(binomials[p.Nu][p.Kappa])
	return valid * newWindow(p.Nu, p.Kappa, p.lambda()).exactly(p.Kappa, p.Nu, p.Hashes, to)
}

// Indeterminate returns β, the probability that the primary array alone shows
// more than one value for a key that was inserted.
func (p Plan) Indeterminate() float64 {
	if p.Kappa == p.Nu {
		return 0
	}
	return 1 - newWindow(p.Nu, p.Kappa, p.lambda()).exactly(0, p.Nu-p.Kappa, p.Hashes, fine)
}

// bitError is the paper's p = (1 − e^(−kn/m))^k.
func (p Plan) bitError() float64 {
	return math.Pow(-math.Expm1(-float64(p.Hashes)/p.CellsPerKey), float64(p.Hashes))
}

// PaperFalsePositive returns the paper's α = C(ν,κ) p^κ (1−p)^(ν−κ): right for
// κ = 1, too low above (5b).
func (p Plan) PaperFalsePositive() float64 {
	e := p.bitError()
	return float64(binomials[p.Nu][p.Kappa]) * math.Pow(e, float64(p.Kappa)) * math.Pow(1-e, float64(p.Nu-p.Kappa))
}

// PaperIndeterminate returns the paper's β = 1 − (1−p)^(ν−κ).
func (p Plan) PaperIndeterminate() float64 {
	return -math.Expm1(float64(p.Nu-p.Kappa) * math.Log1p(-p.bitError()))
}

// PaperBitsPerKey returns m·κ/(1−β)/n: the paper's size of all arrays.
func (p Plan) PaperBitsPerKey() float64 {
	return p.CellsPerKey * float64(p.Kappa) / (1 - p.PaperIndeterminate())
}

// arrayBits returns the length of an array for n keys: n·(m/n)·κ bits, but
// never less than leastBits.
func (p Plan) arrayBits(n uint64) uint64 {
	return max(leastBits, uint64(math.Ceil(float64(n)*p.CellsPerKey*float64(p.Kappa))))
}
