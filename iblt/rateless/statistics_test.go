package rateless

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// trials multiplies the trials of the tests in this file: one is enough to
// notice a broken mapping, a hundred measure the figures in docs/IBLT.md.
var trials = flag.Int("trials", 1, "multiply the trials of statistics tests")

// needed is the number of cells after which a difference of the given make-up
// is decoded, one cell at a time.
func needed(t testing.TB, r *rand.Rand, here, there, mismatched int) int {
	t.Helper()
	key := Key{}
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	n := here + there + mismatched
	a, b := r.Uint64(), r.Uint64()
	for m := 2*n + 64; ; m *= 2 { // the same sets again, if so few cells do not suffice
		s := diverge(rand.New(rand.NewPCG(a, b)), key, m, 0, here, there, mismatched)
		d := NewDecoder(s.ours, s.lookup)
		cells := s.theirs.Prefix(m)
		for i := range cells {
			if err := d.AddCells(cells[i : i+1]); err != nil {
				t.Fatal(err)
			}
			if d.Done() {
				if len(d.Differences()) != n {
					t.Fatalf("done with %d differences of %d", len(d.Differences()), n)
				}
				return d.Cells()
			}
		}
	}
}

// moments returns mean, standard error and the sorted sample.
func moments(x []float64) (mean, stderr float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	sum := 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sum / float64(len(x)-1) / float64(len(x)))
}

func quantile(sorted []float64, q float64) float64 {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func TestCellsADifference(t *testing.T) {
	const seed = 5
	for _, c := range []struct {
		d, trials int
		mean      float64 // docs/DEGREES.md
	}{{64, 400, 1.456}, {256, 150, 1.272}, {1000, 60, 1.153}, {10000, 6, 1.096}} {
		for _, kind := range []string{"missing", "mismatched", "mixed"} {
			r := rand.New(rand.NewPCG(seed, uint64(c.d)))
			var x []float64
			for range c.trials * *trials {
				var n int
				switch kind {
				case "missing":
					n = needed(t, r, c.d/2, c.d-c.d/2, 0)
				case "mismatched":
					n = needed(t, r, 0, 0, c.d)
				default:
					n = needed(t, r, c.d/4, c.d/4, c.d-2*(c.d/4))
				}
				x = append(x, float64(n)/float64(c.d))
			}
			mean, stderr := moments(x)
			slices.Sort(x)
			t.Logf("d = %d %s: %.4f ± %.4f cells a difference, p95 %.3f, p99 %.3f (%d trials, seed %d)",
				c.d, kind, mean, stderr, quantile(x, .95), quantile(x, .99), len(x), seed)
			if math.Abs(mean-c.mean) > 4*stderr+0.01 {
				t.Errorf("d = %d %s: %.4f cells a difference, want %.3f ± %.3f", c.d, kind, mean, c.mean, 4*stderr+0.01)
			}
		}
	}
}

func TestFortyDifferencesFromTheFirstMessage(t *testing.T) {
	const seed = 6
	r := rand.New(rand.NewPCG(seed, 0))
	n, failed := 1000**trials, 0
	for range n {
		if needed(t, r, 10, 10, 20) > 128 {
			failed++
		}
	}
	// 0.2 % may fail; five deviations above that is an error.
	limit := 0.002*float64(n) + 5*math.Sqrt(0.002*float64(n))
	t.Logf("%d of %d decodes of 40 differences needed more than 128 cells (seed %d)", failed, n, seed)
	if float64(failed) > limit {
		t.Errorf("%d of %d decodes failed, want at most %.0f", failed, n, limit)
	}
}

// TestStructuredPairsDecodeAsRandomOnes: indices in a row, checksums of one
// batch in one second, each raised by one.
func TestStructuredPairsDecodeAsRandomOnes(t *testing.T) {
	const d, want = 1000, 1.153
	n := 30 * *trials
	var x []float64
	for i := range n {
		key := Key{byte(i), byte(i >> 8), 1}
		theirs, ours := NewSketch(key, 2*d), NewSketch(key, 2*d)
		sum := func(k Index) Checksum { return Seal(k, 1234<<22|uint64(k)) }
		raised := func(k Index) Checksum { return Seal(k, 1234<<22|uint64(k)+1) }
		for k := Index(1); k <= d; k++ {
			ours.Add(Pair{Index: k, Checksum: sum(k)})
			theirs.Add(Pair{Index: k, Checksum: raised(k)})
		}
		decoder := NewDecoder(ours, func(indices []Index, sums []Checksum) error {
			for i, k := range indices {
				if sums[i] = 0; k <= d {
					sums[i] = sum(k)
				}
			}
			return nil
		})
		cells := theirs.Prefix(2 * d)
		for at := 0; !decoder.Done(); at++ {
			if err := decoder.AddCells(cells[at : at+1]); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range decoder.Differences() {
			if f != (Difference{Mismatched, f.Index, raised(f.Index), sum(f.Index)}) {
				t.Fatalf("found %+v", f)
			}
		}
		x = append(x, float64(decoder.Cells())/d)
	}
	mean, stderr := moments(x)
	t.Logf("%.4f ± %.4f cells a difference", mean, stderr)
	if math.Abs(mean-want) > 4*stderr+0.01 {
		t.Errorf("%.4f cells a difference, want %.3f ± %.3f", mean, want, 4*stderr+0.01)
	}
}
