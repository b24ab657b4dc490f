package rateless

import (
	"math"
	"math/rand/v2"
	"testing"
)

// cellsOf is the naive mapping: the cells of k below end, one step at a time.
func cellsOf(w *words, k Index, end uint64) []uint64 {
	var cells []uint64
	seed := w.seed(k)
	at, state := uint64(0), seed
	for law, end := &w.laws[0], min(end, turn); at < end; {
		cells = append(cells, at)
		state += increment
		at = after(at, law.c, law.power(draw(state)))
	}
	if at >= turn {
		law := &w.laws[1]
		state += increment
		at = after(turn-1, law.c, law.power(draw(state)))
		for at < min(end, join) {
			cells = append(cells, at)
			state += increment
			at = after(at, law.c, law.power(draw(state)))
		}
	}
	law := &w.laws[class(seed)]
	at, state = join-1, seed^w.tail
	for {
		state += increment
		at = after(at, law.c, law.power(draw(state)))
		if at >= end {
			return cells
		}
		cells = append(cells, at)
	}
}

func TestMappingFromAnywhere(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	w := expand(Key{7})
	for range 3000 {
		k := randomIndex(r)
		from, end := r.Uint64N(5000), r.Uint64N(1<<14)
		if r.IntN(2) == 0 {
			from, end = r.Uint64N(70), r.Uint64N(200)
		}
		var want, got []uint64
		for _, at := range cellsOf(&w, k, end) {
			if at >= from {
				want = append(want, at)
			}
		}
		m := w.startAt(k, from)
		buf := make([]uint32, 1+r.IntN(8))
		for m.at < end {
			for _, at := range buf[:m.fill(w.laws, buf, end)] {
				got = append(got, uint64(at))
			}
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: cells [%d, %d) of %d are %v, want %v", seed, from, end, k, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("seed %d: cells [%d, %d) of %d are %v, want %v", seed, from, end, k, got, want)
			}
		}
	}
}

// TestVisiting counts the visits of many mappings to each cell against the formula
// that the estimate uses.
func TestVisiting(t *testing.T) {
	const seed, mappings, end = 3, 200_000, 1 << 16
	w := expand(Key{9})
	visits := make([]int, end)
	r := rand.New(rand.NewPCG(seed, 0))
	var cells [batch]uint32
	for range mappings {
		for m := w.start(randomIndex(r)); m.at < end; {
			for _, at := range cells[:m.fill(w.laws, cells[:], end)] {
				visits[at]++
			}
		}
	}
	if visits[0] != mappings {
		t.Fatalf("cell 0 holds %d of %d pairs", visits[0], mappings)
	}
	deviation := func(got, want, variance float64) float64 { return (got - want) / math.Sqrt(variance) }
	worst, squares, tested := 0.0, 0.0, 0
	for j := 1; j < 4096; j++ {
		want := mappings * visiting(j)
		z := deviation(float64(visits[j]), want, want*(1-visiting(j)))
		worst, squares, tested = max(worst, math.Abs(z)), squares+z*z, tested+1
	}
	// 4095 deviations, each standard normal: the largest is below 5.5 but once
	// in 6,000 tests, their squares' mean is 1 ± 0.022.
	t.Logf("worst deviation %.2f, mean square %.3f (seed %d)", worst, squares/float64(tested), seed)
	if worst > 5.5 || math.Abs(squares/float64(tested)-1) > 0.12 {
		t.Errorf("visits deviate by up to %.2f, mean square %.3f", worst, squares/float64(tested))
	}
	for from := 64; from < end; from *= 2 {
		got, want := 0, 0.0
		for j := from; j < 2*from; j++ {
			got += visits[j]
			want += mappings * visiting(j)
		}
		// Visits of one mapping attract no others: their number is binomial
		// or narrower, up to the spread between the classes.
		z := deviation(float64(got), want, want*4)
		if math.Abs(z) > 5 {
			t.Errorf("cells [%d, %d) hold %d pairs, want %.0f", from, 2*from, got, want)
		}
	}
}

// TestPowerIsUToTheMinusAlpha compares the fixed-point tables with floating
// point.
func TestPowerIsUToTheMinusAlpha(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, 0))
	for i, hundredths := range alphas {
		law, alpha := &theLaws()[i], float64(hundredths)/100
		if c := (1 + 1/alpha) / 2; math.Abs(float64(law.c)/(1<<32)-c) > 1.0/(1<<32) {
			t.Errorf("α = %v: c = %v, want %v", alpha, float64(law.c)/(1<<32), c)
		}
		for range 100_000 {
			random := r.Uint64()>>r.IntN(30) | 1
			want := math.Pow(float64(random)/(1<<64), -alpha) * (1 << 32)
			if want > 1<<62 {
				continue // beyond any cell: saturated
			}
			got := float64(law.power(random))
			if math.Abs(got-want) > want*2e-7+2 {
				t.Fatalf("α = %v: power(%#x) = %v, want %v (seed %d)", alpha, random, got, want, seed)
			}
		}
		for _, random := range []uint64{1, 3, math.MaxUint64, 1 << 63, 1<<63 - 1} {
			power := law.power(random)
			if at := after(0, law.c, power); at < 1 {
				t.Errorf("α = %v, random %#x: step of %d", alpha, random, at)
			}
			if at := after(MaxCells-1, law.c, power); at < MaxCells {
				t.Errorf("α = %v, random %#x: from the last cell back to %d", alpha, random, at)
			}
		}
		if far := after(0, law.c, law.exponent[64]>>1); law.exponent[64] == math.MaxUint64 && far < MaxCells/2 {
			t.Errorf("α = %v: the longest step ends at %d", alpha, far)
		}
	}
}

// TestClasses counts the classes of random indices.
func TestClasses(t *testing.T) {
	const seed, n = 5, 100_000
	r := rand.New(rand.NewPCG(seed, 0))
	w := expand(Key{3})
	var counts [len(alphas)]float64
	for range n {
		counts[class(w.seed(randomIndex(r)))]++
	}
	for i, share := range []float64{0, 0, .18, .56, .26} {
		if want := share * n; math.Abs(counts[i]-want) > 5*math.Sqrt(n*share*(1-share)) {
			t.Errorf("class %d has %.0f of %d indices, want %.0f", i, counts[i], n, want)
		}
	}
}
