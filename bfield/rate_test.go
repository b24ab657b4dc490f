package bfield

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// rows are figures of the paper's formula, of the corrected one and of a
// simulation, which others found independently of this package. m/n is what
// gives the paper's α, rounded to two places.
var rows = []struct {
	nu, kappa, k                int
	perKey                      float64
	paper, corrected, simulated float64
}{
	{16, 1, 12, 17.31, 3.906e-3, 3.906e-3, 3.895e-3},
	{24, 2, 8, 11.53, 3.905e-3, 4.444e-3, 4.47e-3},
	{46, 2, 10, 14.37, 1.000e-3, 1.097e-3, 1.116e-3},
	{20, 3, 7, 9.57, 9.99e-4, 1.960e-3, 1.969e-3},
	{14, 4, 5, 7.01, 1.001e-3, 4.81e-3, 4.80e-3},
}

func rowPlan(i int) Plan {
	r := rows[i]
	return Plan{Keys: 1e6, Values: Codes(r.nu, r.kappa), Nu: r.nu, Kappa: r.kappa, Hashes: r.k, CellsPerKey: r.perKey}
}

func within(got, want, part float64) bool { return math.Abs(got-want) <= part*want }

// TestRates holds both formulas to the known figures, within the rounding of m/n.
func TestRates(t *testing.T) {
	for i, r := range rows {
		p := rowPlan(i)
		if got := p.PaperFalsePositive(); !within(got, r.paper, 0.008) {
			t.Errorf("(%d, %d, %d): the paper's α is %.4g, known %.4g", r.nu, r.kappa, r.k, got, r.paper)
		}
		if got := p.FalsePositive(); !within(got, r.corrected, 0.008) {
			t.Errorf("(%d, %d, %d): α is %.4g, known %.4g", r.nu, r.kappa, r.k, got, r.corrected)
		}
	}
	// The paper's case: 2^-32 by its formula, 2^-29.4 in truth, at 61.1 bits.
	p := Plan{Keys: 1e9, Values: 1140, Nu: 20, Kappa: 3, Hashes: 14, CellsPerKey: 14.1 / math.Ln2}
	if got := math.Log2(p.PaperFalsePositive()); math.Abs(got+32) > 0.15 {
		t.Errorf("1e9 URLs: the paper's α is 2^%.2f", got)
	}
	if got := math.Log2(p.FalsePositive()); math.Abs(got+29.4) > 0.15 {
		t.Errorf("1e9 URLs: α is 2^%.2f, known 2^-29.4", got)
	}
}

// TestRatesSimulated simulates windows with no part of the package but codeOf,
// and compares α and β. The bounds are 2 % and six standard deviations of the count.
func TestRatesSimulated(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	const keys, trials = 50_000, 200_000
	for i, r := range rows {
		p := rowPlan(i)
		size := uint64(math.Ceil(keys * r.perKey * float64(r.kappa)))
		places := size - uint64(r.nu) + 1
		array := make([]uint64, size/64+2)
		for range keys {
			code := codeOf(random.Uint64N(p.Values), r.nu, r.kappa)
			for range r.k {
				at := random.Uint64N(places)
				array[at/64] |= code << (at % 64)
				array[at/64+1] |= code >> (64 - at%64)
			}
		}
		own, exact, extra := uint64(1)<<r.kappa-1, 0, 0
		for range trials {
			acc := uint64(1)<<r.nu - 1
			for range r.k {
				at := random.Uint64N(places)
				acc &= array[at/64]>>(at%64) | array[at/64+1]<<(64-at%64)
			}
			if bits.OnesCount64(acc) == r.kappa {
				exact++
			}
			if acc&^own != 0 {
				extra++
			}
		}
		for _, c := range []struct {
			what      string
			got, want float64
		}{{"α", float64(exact), p.FalsePositive()}, {"β", float64(extra), p.Indeterminate()}} {
			want := c.want * trials
			if math.Abs(c.got-want) > 0.02*want+6*math.Sqrt(want) {
				t.Errorf("seed %d, (%d, %d, %d): %s is %.4g in the simulation, computed %.4g", seed, r.nu, r.kappa, r.k, c.what, c.got/trials, c.want)
			}
		}
	}
}

func TestPlans(t *testing.T) {
	for _, c := range []struct {
		values    uint64
		alpha     float64
		nu, kappa int
		atMost    float64 // bits a key
	}{
		{1, 1. / 256, 1, 1, 11.55}, // a Bloom filter: 1.44·8
		{16, 1. / 256, 16, 1, 17.4},
		{256, 1. / 256, 24, 2, 25.3},
		{256, math.Pow(2, -20), 24, 2, 41.1},
		{1000, math.Pow(2, -32), 46, 2, 61.1}, // the paper's case
		{10000, 1e-3, 41, 3, 40.2},
		{395_010, 1. / 256, 57, 4, 70}, // the most values
		{5, 0.5, 5, 1, 7.4},
	} {
		p, err := NewPlan(Config{Keys: 1e9, Values: c.values, FalsePositive: c.alpha})
		if err != nil {
			t.Errorf("%d values at %g: %v", c.values, c.alpha, err)
			continue
		}
		if p.Nu != c.nu || p.Kappa != c.kappa || p.FalsePositive() > c.alpha*1.001 || p.PaperBitsPerKey() > c.atMost {
			t.Errorf("%d values at %g, at most %.1f bits a key, planned as %+v", c.values, c.alpha, c.atMost, p)
		}
		if p.Keys != 1e9 || float64(p.arrayBits(1e9)) < 1e9*p.CellsPerKey*float64(p.Kappa) {
			t.Errorf("10^9 keys: an array of %d bits", p.arrayBits(1e9))
		}
	}
	largest := Plan{Keys: MaxKeys, Values: 1, Nu: MaxNu, Kappa: MaxKappa, Hashes: MaxHashes, CellsPerKey: MaxCellsPerKey}
	if got := largest.arrayBits(MaxKeys); got != MaxKeys*MaxCellsPerKey*MaxKappa {
		t.Errorf("the largest array has %d bits", got)
	}
}

// TestRatesOfAllPlans: the densest array that is accepted has rates, too; what is
// denser takes as long as it is dense.
func TestRatesOfAllPlans(t *testing.T) {
	for _, c := range []Config{
		{Keys: 1, Values: 10, Nu: 20, Kappa: 4, Hashes: 64, CellsPerKey: 64.0 / MaxLoad},
		{Keys: MaxKeys, Values: 10, Nu: 57, Kappa: 4, Hashes: 8, CellsPerKey: 8.0 / MaxLoad},
	} {
		p, err := NewPlan(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, rate := range []float64{p.FalsePositive(), p.PaperFalsePositive(), p.Indeterminate(), p.PaperIndeterminate()} {
			if !(rate <= 1) {
				t.Errorf("%+v: a rate of %g", c, rate)
			}
		}
	}
}

func TestImpossible(t *testing.T) {
	for _, c := range []Config{
		{Keys: 1, Values: 0, FalsePositive: 0.1},
		{Keys: MaxKeys + 1, Values: 1, FalsePositive: 0.1},
		{Keys: 1, Values: 1 << 63, FalsePositive: 0.1},
		{Keys: 1, Values: 10},
		{Keys: 1, Values: 10, FalsePositive: 0.6},
		{Keys: 1, Values: 10, FalsePositive: 1e-15},
		{Keys: 1, Values: 10, FalsePositive: math.NaN()},
		{Keys: 1, Values: 10, FalsePositive: 0.1, Workers: -1},
		{Keys: 1, Values: 10, FalsePositive: 0.1, Workers: MaxWorkers + 1},
		{Keys: 1, Values: 10, FalsePositive: 0.1, Nu: 10},
		{Keys: 1, Values: 10, Nu: 20, Kappa: 4, Hashes: 64, CellsPerKey: 1e-9},
		{Keys: 1, Values: 10, Nu: 10, Kappa: 1, Hashes: 10, CellsPerKey: 10.0/MaxLoad - 1e-9},
		{Keys: 1, Values: 11, Nu: 10, Kappa: 1, Hashes: 3, CellsPerKey: 5},
		{Keys: 1, Values: 395_011, FalsePositive: 0.1},
		{Keys: 1, Values: 10, Nu: 20, Kappa: 5, Hashes: 3, CellsPerKey: 5},
		{Keys: 1, Values: 10, Nu: 58, Kappa: 1, Hashes: 3, CellsPerKey: 5},
		{Keys: 1, Values: 10, Nu: 10, Kappa: 1, Hashes: MaxHashes + 1, CellsPerKey: 5},
		{Keys: 1, Values: 10, Nu: 10, Kappa: 1, Hashes: 3, CellsPerKey: math.Inf(1)},
		{Keys: 1, Values: 10, Nu: 10, Kappa: 1, Hashes: 3, CellsPerKey: math.NaN()},
	} {
		if p, err := NewPlan(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v is planned as %+v, %v", c, p, err)
		}
	}
}

// TestGoldenPlans pins plans, as fields of one Config must be of one plan on all
// processors: some fuse a multiplication and an addition, and round once less.
func TestGoldenPlans(t *testing.T) {
	for _, g := range []struct {
		values       uint64
		exponent     int
		nu, kappa, k int
		steps        float64 // m/n in units of 2^-16
	}{
		{2, 4, 2, 1, 5, 468288},
		{16, 4, 16, 1, 8, 747892},
		{256, 4, 24, 2, 6, 623941},
		{65536, 4, 37, 4, 7, 696384},
		{2, 8, 2, 1, 9, 850669},
		{16, 8, 16, 1, 12, 1.134081e+06},
		{256, 8, 24, 2, 8, 759609},
		{65536, 8, 37, 4, 7, 696384},
		{2, 11, 2, 1, 12, 1.134549e+06},
		{16, 11, 16, 1, 15, 1.418165e+06},
		{256, 11, 24, 2, 9, 910397},
		{65536, 11, 37, 4, 7, 696384},
		{2, 16, 2, 1, 17, 1.607323e+06},
		{16, 16, 16, 1, 20, 1.890968e+06},
		{256, 16, 24, 2, 12, 1.150886e+06},
		{65536, 16, 37, 4, 8, 812595},
		{2, 20, 2, 1, 21, 1.985518e+06},
		{16, 20, 16, 1, 24, 2.269168e+06},
		{256, 20, 24, 2, 14, 1.343231e+06},
		{65536, 20, 37, 4, 10, 913957},
		{2, 32, 2, 1, 33, 3.1201e+06},
		{16, 32, 7, 2, 18, 1.808059e+06},
		{256, 32, 24, 2, 20, 1.919306e+06},
		{65536, 32, 37, 4, 13, 1.226384e+06},
	} {
		p, err := NewPlan(Config{Keys: 1e6, Values: g.values, FalsePositive: math.Ldexp(1, -g.exponent)})
		if err != nil {
			t.Fatal(err)
		}
		if p.Nu != g.nu || p.Kappa != g.kappa || p.Hashes != g.k || p.CellsPerKey != g.steps/cellSteps {
			t.Errorf("%d values, 2^-%d: {%d, %d, %d, %d, %d, %v},", g.values, g.exponent, g.values, g.exponent, p.Nu, p.Kappa, p.Hashes, p.CellsPerKey*cellSteps)
		}
	}
}
