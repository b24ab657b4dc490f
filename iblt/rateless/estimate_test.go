package rateless

import (
	"bytes"
	"fmt"
	"math"
	mathbits "math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestPlacesOfTheEstimator counts where random indices have their bits, and how often
// a missing and a mismatched pair flip them.
func TestPlacesOfTheEstimator(t *testing.T) {
	const seed, n = 12, 100_000
	r := rand.New(rand.NewPCG(seed, 0))
	s := NewSketch(Key{5}, 0)
	empty := s.Estimator()
	var at [8 * EstimatorSize]float64
	var flipped [2]float64 // missing, mismatched
	for i := range n {
		k := randomIndex(r)
		a, b := randomChecksum(r, k), Checksum(0)
		if i%2 == 1 {
			b = randomChecksum(r, k)
		}
		s.Replace(Pair{Index: k, Checksum: a}, Pair{Index: k, Checksum: b})
		for i, bits := range s.estimator {
			if bits != 0 {
				at[8*i+mathbits.TrailingZeros8(bits)]++
			}
		}
		if !bytes.Equal(s.estimator, empty) {
			flipped[i%2]++
		}
		s.Replace(Pair{Index: k, Checksum: b}, Pair{Index: k, Checksum: a})
	}
	agree := func(what string, got, chance float64, n int) {
		t.Helper()
		if want := float64(n) * chance; math.Abs(got-want) > 6*math.Sqrt(want)+6 {
			t.Errorf("%s: %.0f of %d, want %.1f (seed %d)", what, got, n, want, seed)
		}
	}
	agree("flipped by a missing pair", flipped[0], 0.5, n/2)
	agree("flipped by a mismatched pair", flipped[1], 0.5, n/2)
	for octave := range octaves {
		sum := 0.0
		for i := octave * anOctave; i < (octave+1)*anOctave; i++ {
			agree(fmt.Sprint("bit ", i), at[i], -math.Expm1(unhit(octave))/2, n)
			sum += at[i]
		}
		agree(fmt.Sprint("octave ", octave), sum, -anOctave*math.Expm1(unhit(octave))/2, n)
	}
}

// TestEstimatorIsOfTheSet: an estimator depends neither on the length of the sketch nor on
// the way in which the set came about.
func TestEstimatorIsOfTheSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	short, long := NewSketch(Key{1}, 0), NewSketch(Key{1}, 5000)
	for _, q := range randomPairs(r, 500) {
		short.Add(q)
		first := Pair{Index: q.Index, Checksum: randomChecksum(r, q.Index)}
		long.Add(first)
		long.Replace(first, q)
	}
	gone := randomPairs(r, 10)
	for _, q := range gone {
		long.Add(q)
	}
	for _, q := range gone {
		long.Remove(q)
	}
	for name, s := range map[string]*Sketch{"longer": long, "cut": long.Window(0, 300), "clone": short.Clone()} {
		if string(s.Estimator()) != string(short.Estimator()) {
			t.Errorf("the estimator of the %s sketch differs", name)
		}
	}
	if NewWindow(Key{1}, 0, 10).Estimator() != nil || long.Window(1, 10).Estimator() != nil {
		t.Error("a window has an estimator")
	}
}

// simulateEstimators returns estimators of two sets with d differences.
func simulateEstimators(r *rand.Rand, d int) (theirs, ours Estimator) {
	theirs, ours = make(Estimator, EstimatorSize), make(Estimator, EstimatorSize)
	for range d {
		theirs.flip(r.Uint64(), Checksum(r.Uint64()))
	}
	return theirs, ours
}

// estimates collects what estimates of d make of it.
type estimates struct {
	d, n, good, unbounded int
	logs                  []float64
}

func (e *estimates) add(theirs, ours Estimator) {
	got, ok := Estimate(theirs, ours)
	e.n++
	if math.Abs(got/float64(e.d)-1) <= 0.35 {
		e.good++
	}
	if !ok {
		e.unbounded++
	}
	e.logs = append(e.logs, math.Log(got/float64(e.d)))
}

// check logs a line of the table and fails where fewer than 95 % are within 35 %,
// by five standard deviations: less than one false alarm in 10^6.
func (e *estimates) check(t *testing.T, name string) {
	t.Helper()
	mean, stderr := moments(e.logs)
	t.Logf("%s, d = %d: bias %+.1f %%, standard error %.1f %%, within 35 %% in %.2f %% of %d, not bounded in %d",
		name, e.d, 100*mean, 100*stderr*math.Sqrt(float64(e.n)), 100*float64(e.good)/float64(e.n), e.n, e.unbounded)
	if float64(e.good) < 0.95*float64(e.n)-5*math.Sqrt(0.0475*float64(e.n)) {
		t.Errorf("%s, d = %d: within 35 %% in %d of %d estimates", name, e.d, e.good, e.n)
	}
}

func TestEstimate(t *testing.T) {
	const seed = 7
	for _, d := range []int{50, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000} {
		r := rand.New(rand.NewPCG(seed, uint64(d)))
		e := estimates{d: d}
		for range min(300, max(10, 2_000_000/d)) * *trials {
			e.add(simulateEstimators(r, d))
		}
		e.check(t, "simulated")
	}
}

// TestEstimateOfSketches estimates from the estimators of sketches. It must
// agree with the simulation.
func TestEstimateOfSketches(t *testing.T) {
	const seed, m = 7, 256
	for _, kind := range []struct {
		name                    string
		here, there, mismatched int // of 4
	}{{"missing", 2, 2, 0}, {"mismatched", 0, 0, 4}, {"mixed", 1, 1, 2}} {
		for _, d := range []int{52, 300, 3000, 30_000} {
			r := rand.New(rand.NewPCG(seed, uint64(d)))
			e := estimates{d: d}
			for i := range max(3, 15_000/d) * *trials {
				s := diverge(r, Key{byte(i), byte(i >> 8), byte(i >> 16)}, m, 10, kind.here*d/4, kind.there*d/4, kind.mismatched*d/4)
				e.add(s.theirs.Estimator(), s.ours.Estimator())
			}
			e.check(t, kind.name)
		}
	}
}

func TestEstimateAtTheEnds(t *testing.T) {
	s := NewSketch(Key{}, 100)
	if d, ok := Estimate(s.Estimator(), s.Estimator()); d != 0 || !ok {
		t.Errorf("equal sets: %v, %v", d, ok)
	}
	if d, ok := Estimate(nil, s.Estimator()); d != 0 || ok {
		t.Errorf("no estimators: %v, %v", d, ok)
	}
	one := s.Estimator()
	one[0] ^= 4
	if d, ok := Estimate(one, s.Estimator()); d < 0.5 || d > 5 || !ok {
		t.Errorf("one bit differs: %v, %v", d, ok)
	}
	full := s.Estimator()
	for i := range full {
		full[i] ^= 0xff
	}
	if d, ok := Estimate(full, s.Estimator()); ok || d < 1_000_000 || math.IsNaN(d) || math.IsInf(d, 0) {
		t.Errorf("all bits differ: %v, %v", d, ok)
	}
	if d, ok := Estimate(full[:20], s.Estimator()); ok || d < 500 || math.IsNaN(d) {
		t.Errorf("160 bits differ: %v, %v", d, ok)
	}
	// Under any huge d half of the bits differ. In the last two octaves, 34 fewer
	// than half of 256 are 4.2 standard deviations of that, and bound d; 12 fewer
	// are 1.5, and do not.
	for fewer, bounded := range map[int]bool{34: true, 12: false} {
		theirs := s.Estimator()
		for i := range 8 * EstimatorSize {
			if last := i - (octaves-2)*anOctave; last < 0 && i%16 < 8 || last >= 0 && last*37%(2*anOctave) < anOctave-fewer {
				theirs[i/8] ^= 1 << (i % 8)
			}
		}
		if d, ok := Estimate(theirs, s.Estimator()); ok != bounded || d < 100_000 {
			t.Errorf("%d fewer than half of the last octaves: %.0f, bounded %v", fewer, d, ok)
		}
	}
	if d, ok := Estimate(make(Estimator, 5000), append(s.Estimator(), full...)); d != 0 || !ok {
		t.Errorf("bytes behind equal estimators: %v, %v", d, ok)
	}
}

func TestDecoderEstimate(t *testing.T) {
	const seed = 8
	for _, c := range []struct {
		d, cells   int
		estimators bool
		within     float64 // measured (10.4, 6.7, 8.7 and 2.6 %), and some to spare
	}{{1000, 500, true, .14}, {1000, 1000, true, .09}, {1000, 1000, false, .12}, {10_000, 10_000, false, .05}} {
		r := rand.New(rand.NewPCG(seed, uint64(c.d)))
		n := max(8, 60_000/c.d) * *trials
		var errs []float64
		for i := range n {
			s := diverge(r, Key{byte(i), byte(i >> 8)}, c.cells, 0, c.d/4, c.d/4, c.d/2)
			d := NewDecoder(s.ours, s.lookup)
			if err := d.AddCells(s.theirs.Prefix(c.cells)); err != nil {
				t.Fatal(err)
			}
			if c.estimators {
				d.AddEstimators(s.theirs.Estimator(), s.ours.Estimator())
			}
			errs = append(errs, d.Estimate()/float64(c.d)-1)
		}
		sum, bias := 0.0, 0.0
		for _, e := range errs {
			sum += e * e
			bias += e
		}
		rms := math.Sqrt(sum / float64(n))
		t.Logf("d = %d from %d cells: error %.1f %%, bias %+.1f %% (%d trials, seed %d)", c.d, c.cells, 100*rms, 100*bias/float64(n), n, seed)
		if rms > c.within {
			t.Errorf("d = %d from %d cells: error %.1f %%, want %.0f %%", c.d, c.cells, 100*rms, 100*c.within)
		}
	}
}

// TestDecoderEstimateKnowsWhatWasFound: when all is explained it is the number of
// what was found, and before that at least one more.
func TestDecoderEstimateKnowsWhatWasFound(t *testing.T) {
	s := diverge(rand.New(rand.NewPCG(12, 12)), Key{}, 400, 0, 50, 50, 100)
	d := NewDecoder(s.ours, s.lookup)
	for at := 0; !d.Done(); at++ {
		if err := d.AddCells(s.theirs.Prefix(at + 1)[at:]); err != nil {
			t.Fatal(err)
		}
		if found := float64(len(d.found)); !d.Done() && d.Estimate() < found+1 || d.Done() && d.Estimate() != found {
			t.Fatalf("%d cells: %v found, estimate %v, done %v", at+1, found, d.Estimate(), d.Done())
		}
	}
}

func TestDecoderEstimateUsesEstimators(t *testing.T) {
	s := diverge(rand.New(rand.NewPCG(9, 9)), Key{}, 32, 0, 2000, 2000, 4000)
	d := NewDecoder(s.ours, s.lookup)
	if err := d.AddCells(s.theirs.Prefix(32)); err != nil {
		t.Fatal(err)
	}
	lower := d.Estimate()
	d.AddEstimators(s.theirs.Estimator(), s.ours.Estimator())
	got := d.Estimate()
	t.Logf("8,000 differences: %.0f from cells, %.0f with estimators", lower, got)
	if lower > 8000 || math.Abs(got/8000-1) > .6 {
		t.Errorf("8,000 differences: %.0f from cells, %.0f with estimators", lower, got)
	}
}

// TestSlope compares with the difference quotient of the likelihood, of cells and
// of estimators side by side.
func TestSlope(t *testing.T) {
	missing := theTables().missing
	samples := []sample{
		{missing: missing(10), equal: 3, differ: 20},
		{missing: missing(100), equal: 30, differ: 10},
		{missing: missing(200), chance: 0.5, equal: 9, differ: 7},
		{missing: missing(1000), chance: 0.5, equal: 14, differ: 2},
	}
	for _, d := range []float64{1, 10, 100, 1000} {
		const h = 1e-4
		want := (likelihood(samples, d*(1+h)) - likelihood(samples, d*(1-h))) / (2 * h * d)
		if got := slope(samples, d); math.Abs(got-want) > 1e-5*math.Abs(want) {
			t.Errorf("at %v: %v, want %v", d, got, want)
		}
	}
}

// TestLikeliestIsLikeliest compares the search by slope with a scan.
func TestLikeliestIsLikeliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		d := math.Exp2(rapid.Float64Range(0, 16).Draw(t, "log d"))
		cells := rapid.IntRange(0, 2000).Draw(t, "cells") // whose whole check was seen, of estimators a bit
		var samples []sample
		n := rapid.IntRange(2, 2000).Draw(t, "samples")
		for i := 1; i < n; i++ {
			s := sample{missing: theTables().missing(i * i)}
			if i >= cells {
				s.chance = 0.5
			}
			if r.Float64() < math.Exp(d*s.missing) || r.Float64() < s.chance {
				s.equal = 1
			} else {
				s.differ = 1
			}
			samples = append(samples, s)
		}
		got, _ := likeliest(samples)
		// Half a unit is what likeliest gives away where nothing is equal; the
		// rest is for a lesser peak beside the largest.
		for x := -2.0; x < 30; x += 0.25 {
			if l := likelihood(samples, math.Exp2(x)); l > likelihood(samples, got)+1.5 {
				t.Fatalf("%.2f is likelier than %.2f", math.Exp2(x), got)
			}
		}
		if math.IsNaN(slope(samples, 1e9)) || math.IsNaN(slope(samples, 1e-3)) {
			t.Fatal("a slope is not a number")
		}
	})
}
