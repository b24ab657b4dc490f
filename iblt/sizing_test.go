package iblt

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// TestThresholdFormula holds the computed thresholds against the definition:
// just above c_k the condition of section 2.4 holds for all x, just below not.
func TestThresholdFormula(t *testing.T) {
	condition := func(k int, alpha float64) bool {
		for x := 1e-4; x < 1; x += 1e-4 {
			if 1-math.Exp(-float64(k)*alpha*math.Pow(x, float64(k-1))) >= x {
				return false
			}
		}
		return true
	}
	for k := 3; k <= 12; k++ {
		c := TableConfig{Hashes: k}.Threshold()
		if !condition(k, 1/c*(1-1e-5)) || condition(k, 1/c*(1+1e-5)) {
			t.Errorf("c_%d = %v is not where the condition ends", k, c)
		}
	}
	for _, k := range []int{-1, 0, 1, 2} {
		if !math.IsNaN(TableConfig{Hashes: k}.Threshold()) {
			t.Errorf("c_%d = %v", k, TableConfig{Hashes: k}.Threshold())
		}
	}
	irregular := TableConfig{Cells: 1088, Degrees: Irregular()}
	if c := irregular.Threshold(); math.Abs(c-1.088) > 0.0005 || irregular.Capacity() != 1000 {
		t.Errorf("the irregular threshold is %v, the capacity %d", c, irregular.Capacity())
	}
	if c := (TableConfig{Cells: 1000, Hashes: 2}); c.Capacity() != 0 {
		t.Errorf("capacity with two hashes: %d", c.Capacity())
	}
	if c := (TableConfig{Degrees: []Degree{{2, 1}, {3, 1}}}).Threshold(); !math.IsNaN(c) {
		t.Errorf("threshold with a degree of two: %v", c)
	}
}

// TestSmallCores compares the count of small cores with all placements of two
// and three keys in tiny subtables.
func TestSmallCores(t *testing.T) {
	// Two keys in k subtables of b cells: the same cell in each.
	if got, want := smallCores(2, 3, 5), math.Pow(5, -3); math.Abs(got-want) > 1e-12 {
		t.Errorf("two keys: %v, not %v", got, want)
	}
	// Three keys: 3 pairs, and all three in one cell in each subtable.
	if got, want := smallCores(3, 3, 5), 3*math.Pow(5, -3)+math.Pow(5, -6); math.Abs(got-want) > 1e-12 {
		t.Errorf("three keys: %v, not %v", got, want)
	}
	// Four keys in one subtable of 2 cells: 2 + 6 of 16 placements of all four
	// leave no key alone, 2 of 8 of three, 2 of 4 of two.
	if got, want := smallCores(4, 1, 2), 8.0/16+4*2.0/8+6*2.0/4; math.Abs(got-want) > 1e-12 {
		t.Errorf("four keys: %v, not %v", got, want)
	}
}

// fails counts the tables that do not list n keys.
func fails(t testing.TB, config TableConfig, n, trials int, seed uint64) (count int) {
	t.Helper()
	for trial := range trials {
		config.Seed = seed<<32 | uint64(trial)
		table := newTable(t, config)
		for x := range uint64(n) {
			table.Insert(x, x)
		}
		if !table.Drain().Complete {
			count++
		}
	}
	return count
}

// TestConfigFor simulates the tables that are proposed: they fail as often as
// was allowed, or more seldom, but for 6 standard errors; and they are not much
// larger than they must be: a fifth of the cells fewer fail more often. (Tables
// for fewer than 20 differences have few sizes to choose from.)
func TestConfigFor(t *testing.T) {
	const seed = 13
	for _, c := range []struct {
		n, trials int
		failure   float64
	}{{1, 50, 1e-9}, {2, 4000, 0.05}, {5, 4000, 0.01}, {10, 4000, 0.01}, {20, 2000, 0.02}, {21, 2000, 0.02}, {40, 2000, 0.02}, {100, 1000, 0.02}, {1000, 100, 0.05}, {4000, 40, 0.1}, {20_000, 20, 0.1}} {
		config, err := ConfigFor(c.n, c.failure)
		if err != nil {
			t.Fatal(err)
		}
		got, want := fails(t, config, c.n, c.trials, seed), float64(c.trials)*c.failure
		t.Logf("%d differences: %d cells, k = %d: %d of %d fail, allowed %.4g", c.n, config.Cells, config.Hashes, got, c.trials, want)
		if float64(got) > want+6*math.Sqrt(want+1) {
			t.Errorf("%d differences, failure %v: %d of %d tables fail", c.n, c.failure, got, c.trials)
		}
		if c.n < 20 {
			continue
		}
		config.Cells -= config.Cells / 5
		if got := fails(t, config, c.n, c.trials, seed); float64(got) < want+6*math.Sqrt(want+1) {
			t.Errorf("%d differences, failure %v: with a fifth of the cells fewer, %d of %d tables fail", c.n, c.failure, got, c.trials)
		}
	}
	// The paper's own sizes, with its failures: 2 of 20,000 tables with 14,500
	// cells, fewer than 1 in 200,000 with 14,600.
	if f := listingFailure(10_000, 5, 2900, TableConfig{Hashes: 5}.Threshold()); f < 2e-5 || f > 1e-3 {
		t.Errorf("14,500 cells fail with %v", f)
	}
	for k := leastHashes; k <= sizingHashes; k++ {
		if _, ok := waterfall[k]; !ok {
			t.Errorf("no waterfall for k = %d", k)
		}
	}
}

// TestConfigForGrows: more differences, or fewer failures, never take fewer
// cells by more than the change of k explains, and no cell is wasted.
func TestConfigForGrows(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 0))
	for range 100 {
		n, failure := int(math.Exp(r.Float64()*14)), math.Exp(-1-20*r.Float64())
		config, err := ConfigFor(n, failure)
		if err != nil {
			t.Fatal(err)
		}
		if rarer, err := ConfigFor(n, failure/10); err != nil || rarer.Cells < config.Cells {
			t.Errorf("%d differences: %+v for %.3g, %+v for a tenth (%v)", n, config, failure, rarer, err)
		}
		if size := config.Cells / config.Hashes; size > 1 && listingFailure(n, config.Hashes, size-1, TableConfig{Hashes: config.Hashes}.Threshold()) <= failure {
			t.Errorf("%d differences, %.3g: a smaller table would do than %+v", n, failure, config)
		}
	}
	for _, failure := range []float64{0, 1, -1, 2, math.NaN(), math.Inf(1)} {
		if _, err := ConfigFor(10, failure); !errors.Is(err, ErrTableConfig) {
			t.Errorf("failure %v: %v", failure, err)
		}
	}
	for _, n := range []int{-1, 1 << 40} {
		if _, err := ConfigFor(n, 0.01); !errors.Is(err, ErrTableConfig) {
			t.Errorf("%d differences: %v", n, err)
		}
	}
	if config, err := ConfigFor(0, 0.01); err != nil || config.Cells != 3 {
		t.Errorf("no differences: %+v, %v", config, err)
	}
}
