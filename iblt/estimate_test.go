package iblt

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestProbePositions(t *testing.T) {
	last := -1
	for i := range MaxProbes {
		at := probeAt(i)
		if at <= last || at >= probesEnd {
			t.Fatalf("probe %d at %d, after %d", i, at, last)
		}
		last = at
		f := farProbes{}
		f.add(uint32(at), 5)
		if f.checks[i] != 5 {
			t.Fatalf("probe %d at %d is stored elsewhere", i, at)
		}
		if probesBelow(at) != i || probesBelow(at+1) != i+1 {
			t.Fatalf("probesBelow(%d) = %d, want %d", at, probesBelow(at), i)
		}
	}
	f, set := farProbes{}, 0
	for at := range uint32(probesEnd) {
		f.add(at, 1)
	}
	for _, check := range f.checks {
		set += int(check)
	}
	if set != MaxProbes {
		t.Fatalf("%d positions are probes, want %d", set, MaxProbes)
	}
}

// TestProbesDoNotDependOnLength: a probe is the same whether the sketch holds
// its cell or not.
func TestProbesDoNotDependOnLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	short, long := NewSketch(Key{1}, 100), NewSketch(Key{1}, 5000)
	for _, q := range randomPairs(r, 500) {
		short.Add(q)
		long.Add(q)
	}
	for name, s := range map[string]*Sketch{"longer": long, "cut": long.Window(0, 300), "clone": short.Clone()} {
		if string(s.Probes()) != string(short.Probes()) {
			t.Errorf("probes of the %s sketch differ", name)
		}
	}
	if NewWindow(Key{1}, 0, 10).Probes() != nil {
		t.Error("a window has probes")
	}
}

// simulateProbes returns probes of two sets with d differences: how many of them
// fall in each class, and which probes one of them belongs to, by the visiting
// probabilities alone.
func simulateProbes(r *rand.Rand, d int) (theirs, ours Probes) {
	var of [len(shares)]float64
	drawn := min(d, 10_000) // beyond, each stands for several: the luck of classes is next to none
	for range drawn {
		percent, class := r.Uint64N(100), 0
		for percent >= shares[class] {
			class++
		}
		of[class] += float64(d) / float64(drawn)
	}
	theirs, ours = make(Probes, MaxProbes), make(Probes, MaxProbes)
	for i, missed := range missedByClass() {
		sum := 0.0
		for class, n := range of {
			if n > 0 { // at cell 0 the logarithm is infinite
				sum += n * missed[class]
			}
		}
		if r.Float64() >= math.Exp(sum) {
			theirs[i] = byte(r.Uint32())
		}
	}
	return theirs, ours
}

// missedByClass is the logarithm of the probability that a pair of a class is not
// in the cell of a probe.
var missedByClass = sync.OnceValue(func() *[MaxProbes][len(shares)]float64 {
	var out [MaxProbes][len(shares)]float64
	for i := range out {
		for class := range shares {
			out[i][class] = math.Log1p(-visitingOf(class, probeAt(i)))
		}
	}
	return &out
})

// estimates collects what estimates of d make of it.
type estimates struct {
	d, n, good, unbounded int
	logs                  []float64
}

func (e *estimates) add(theirs, ours Probes) {
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

// check logs a line of the table and fails where fewer than 90 % are within 35 %,
// by five standard deviations: less than one false alarm in 10^6.
func (e *estimates) check(t *testing.T, name string) {
	t.Helper()
	mean, stderr := moments(e.logs)
	t.Logf("%s, d = %d: bias %+.1f %%, standard error %.1f %%, within 35 %% in %.2f %% of %d, not bounded in %d",
		name, e.d, 100*mean, 100*stderr*math.Sqrt(float64(e.n)), 100*float64(e.good)/float64(e.n), e.n, e.unbounded)
	if float64(e.good) < 0.90*float64(e.n)-5*math.Sqrt(0.09*float64(e.n)) {
		t.Errorf("%s, d = %d: within 35 %% in %d of %d estimates", name, e.d, e.good, e.n)
	}
}

func TestEstimate(t *testing.T) {
	const seed = 7
	for _, d := range []int{50, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000} {
		r := rand.New(rand.NewPCG(seed, uint64(d)))
		e := estimates{d: d}
		for range 300 * *trials {
			e.add(simulateProbes(r, d))
		}
		e.check(t, "simulated")
	}
}

// TestEstimateOfSketches estimates from the probes of sketches, much shorter
// than where the probes lie. It must agree with the simulation.
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
				e.add(s.theirs.Probes(), s.ours.Probes())
			}
			e.check(t, kind.name)
		}
	}
}

func TestEstimateAtTheEnds(t *testing.T) {
	s := NewSketch(Key{}, 100)
	if d, ok := Estimate(s.Probes(), s.Probes()); d != 0 || !ok {
		t.Errorf("equal sets: %v, %v", d, ok)
	}
	if d, ok := Estimate(nil, s.Probes()); d != 0 || ok {
		t.Errorf("no probes: %v, %v", d, ok)
	}
	one := s.Clone()
	one.Add(Pair{Index: 77, Checksum: 5})
	if d, ok := Estimate(one.Probes(), s.Probes()); d < 0.2 || d > 5 || !ok {
		t.Errorf("one difference: %v, %v", d, ok)
	}
	full := s.Probes()
	for i := range full {
		full[i] ^= 0xff
	}
	if d, ok := Estimate(full, s.Probes()); ok || d < 1_000_000 || math.IsNaN(d) || math.IsInf(d, 0) {
		t.Errorf("all probes differ: %v, %v", d, ok)
	}
	if d, ok := Estimate(full[:20], s.Probes()[:20]); ok || d < 1 || math.IsNaN(d) {
		t.Errorf("20 probes differ: %v, %v", d, ok)
	}
	// Under any huge d half of the probes differ. In the last octave, 24 fewer
	// than half of 128 are 4.2 standard deviations of that, and bound d; 9 fewer
	// are 1.6, and do not.
	for fewer, bounded := range map[int]bool{24: true, 9: false} {
		theirs, ours := s.Probes(), s.Probes()
		for i := range theirs {
			if last := i - (MaxProbes - anOctave); last < 0 && i%16 < 8 || last >= 0 && last*37%anOctave < anOctave/2-fewer {
				theirs[i] ^= 0xff
			}
		}
		if d, ok := Estimate(theirs, ours); ok != bounded || d < 100_000 {
			t.Errorf("%d fewer than half of the last octave: %.0f, bounded %v", fewer, d, ok)
		}
	}
	if d, ok := Estimate(make(Probes, 5000), make(Probes, 5000)); d != 0 || !ok {
		t.Errorf("5000 equal probes: %v", d)
	}
}

// TestProbeSamples: each probe from a position on is counted once, with its near
// neighbours only.
func TestProbeSamples(t *testing.T) {
	theirs, ours := simulateProbes(rand.New(rand.NewPCG(11, 11)), 1000)
	for _, from := range []int{0, 1, 2, 100, 128, 500, 1001, 1 << 20, probesEnd - 1, probesEnd} {
		differ := 0.0
		for i := max(probesBelow(from), 1); i < MaxProbes; i++ {
			if (theirs[i]^ours[i])&probeBit(i) != 0 {
				differ++
			}
		}
		i := max(probesBelow(from), 1)
		for _, s := range probeSamples(nil, theirs, ours, from) {
			n, mean := int(s.equal+s.differ), 0.0
			for probe := i; probe < i+n; probe++ {
				mean += missing(probeAt(probe)) / float64(n)
			}
			if math.Abs(s.missing/mean-1) > 1e-9 || float64(probeAt(i+n-1)) > 1.13*float64(probeAt(i)) {
				t.Fatalf("from %d, probes %d to %d: %v, want %v", from, i, i+n-1, s.missing, mean)
			}
			i += n
			differ -= s.differ
		}
		if i != MaxProbes || differ != 0 {
			t.Errorf("from %d: probes counted to %d, and %v that differ are missing", from, i, differ)
		}
	}
}

// TestPackedProbes: what travels tells as much as what is kept.
func TestPackedProbes(t *testing.T) {
	s := diverge(rand.New(rand.NewPCG(10, 10)), Key{}, 100, 10, 100, 100, 200)
	theirs, ours := s.theirs.Probes(), s.ours.Probes()
	packed := theirs.Pack()
	if len(packed) != MaxPacked {
		t.Fatalf("%d probes take %d bytes", len(theirs), len(packed))
	}
	read := UnpackProbes(packed)
	if string(read.Pack()) != string(packed) || len(read) != len(theirs) {
		t.Error("packed probes are read as others")
	}
	kept, _ := Estimate(theirs, ours)
	if got, ok := Estimate(read, ours); got != kept || !ok {
		t.Errorf("packed probes tell %.1f, kept ones %.1f", got, kept)
	}
	if got := len(UnpackProbes(make([]byte, 5000))); got != MaxProbes {
		t.Errorf("5000 bytes are read as %d probes", got)
	}
	if got := theirs[:23].Pack(); string(got) != string(packed[:2]) {
		t.Errorf("23 probes are packed as %x, want %x", got, packed[:2])
	}
	if got := len(make(Probes, 5000).Pack()); got != MaxPacked {
		t.Errorf("5000 probes take %d bytes", got)
	}
	if UnpackProbes(nil) != nil || len(Probes(nil).Pack()) != 0 {
		t.Error("no probes are read as some")
	}
}

func TestDecoderEstimate(t *testing.T) {
	const seed = 8
	for _, c := range []struct {
		d, cells int
		probes   bool
		within   float64 // measured (15, 7, 8 and 2.5 %), and some to spare
	}{{1000, 500, true, .20}, {1000, 1000, true, .12}, {1000, 1000, false, .12}, {10_000, 10_000, false, .05}} {
		r := rand.New(rand.NewPCG(seed, uint64(c.d)))
		n := max(8, 60_000/c.d) * *trials
		var errs []float64
		for i := range n {
			s := diverge(r, Key{byte(i), byte(i >> 8)}, c.cells, 0, c.d/4, c.d/4, c.d/2)
			d := NewDecoder(Key{byte(i), byte(i >> 8)}, s.ours, s.lookup)
			if err := d.AddCells(s.theirs.Prefix(c.cells)); err != nil {
				t.Fatal(err)
			}
			if c.probes {
				d.AddProbes(s.theirs.Probes(), s.ours.Probes())
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
	d := NewDecoder(Key{}, s.ours, s.lookup)
	for at := 0; !d.Done(); at++ {
		if err := d.AddCells(s.theirs.Prefix(at + 1)[at:]); err != nil {
			t.Fatal(err)
		}
		if found := float64(len(d.found)); !d.Done() && d.Estimate() < found+1 || d.Done() && d.Estimate() != found {
			t.Fatalf("%d cells: %v found, estimate %v, done %v", at+1, found, d.Estimate(), d.Done())
		}
	}
}

func TestDecoderEstimateUsesProbes(t *testing.T) {
	s := diverge(rand.New(rand.NewPCG(9, 9)), Key{}, 32, 0, 2000, 2000, 4000)
	d := NewDecoder(Key{}, s.ours, s.lookup)
	if err := d.AddCells(s.theirs.Prefix(32)); err != nil {
		t.Fatal(err)
	}
	lower := d.Estimate()
	d.AddProbes(s.theirs.Probes(), s.ours.Probes())
	got := d.Estimate()
	t.Logf("8,000 differences: %.0f from cells, %.0f with probes", lower, got)
	if lower > 8000 || math.Abs(got/8000-1) > .6 {
		t.Errorf("8,000 differences: %.0f from cells, %.0f with probes", lower, got)
	}
}

// TestSlope compares with the difference quotient of the likelihood, of cells and
// of probes side by side.
func TestSlope(t *testing.T) {
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
		cells := rapid.IntRange(0, MaxProbes).Draw(t, "cells") // whose whole check was seen, of probes a bit
		var samples []sample
		n := rapid.IntRange(2, MaxProbes).Draw(t, "samples")
		for i := 1; i < n; i++ {
			s := sample{missing: missing(probeAt(i))}
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
