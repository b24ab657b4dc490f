package rateless

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/internal/keyhash"
)

var differences = flag.Int("differences", 0, "TestDecodes: decode so many alone, -trials times of each kind")

// decode is what came of one decode.
type decode struct {
	cells          int
	undone, acts   int
	refused        int
	stalled, wrong bool // not done, or done with what is not so
}

// decodeOnce decodes d differences, changed of them changes, half of the others missing
// on each side, against an index of many records. A fiftieth of the cells comes at a
// time.
func decodeOnce(t testing.TB, r *rand.Rand, index map[Index]Checksum, d, changed int) (out decode) {
	t.Helper()
	var key Key
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	m := 2*d + 1500
	theirs, ours := NewSketch(key, m), NewSketch(key, m)
	truth := make(map[Index]Difference, d)
	for len(truth) < d {
		q := randomPair(r)
		if _, again := truth[q.Index]; again || index[q.Index] != 0 {
			continue
		}
		f := Difference{Mismatched, q.Index, q.Checksum, randomChecksum(r, q.Index)}
		switch n := len(truth); {
		case n < changed && f.Theirs == f.Ours:
			continue
		case n < changed:
		case n%2 == 0:
			f.Kind, f.Ours = MissingHere, 0
		default:
			f.Kind, f.Theirs = MissingThere, 0
		}
		truth[q.Index] = f
		theirs.Add(Pair{Index: f.Index, Checksum: f.Theirs})
		ours.Add(Pair{Index: f.Index, Checksum: f.Ours})
	}
	dec := NewDecoder(ours, func(indices []Index, sums []Checksum) error {
		for i, k := range indices {
			if f, ok := truth[k]; ok {
				sums[i] = f.Ours
			} else {
				sums[i] = index[k]
			}
		}
		return nil
	})
	cells := theirs.Prefix(m)
	for len(cells) > 0 && !dec.Done() {
		n := min(len(cells), max(1, d/50))
		if err := dec.AddCells(cells[:n]); err != nil {
			t.Fatal(err)
		}
		cells = cells[n:]
	}
	out = decode{cells: dec.Cells(), undone: dec.work.Undone, refused: dec.work.Refused, acts: dec.work.Acts, stalled: !dec.Done()}
	if dec.Done() {
		found := dec.Differences()
		out.wrong = len(found) != d
		for _, f := range found {
			out.wrong = out.wrong || truth[f.Index] != f
		}
	}
	return out
}

// TestDecodes decodes against an index of a million records, and counts what comes
// of pairs that are taken for one by chance: no decode may end with a wrong one.
func TestDecodes(t *testing.T) {
	const seed, n = 31, 1_000_000
	r := rand.New(rand.NewPCG(seed, 0))
	index := make(map[Index]Checksum, n)
	for len(index) < n {
		q := randomPair(r)
		index[q.Index] = q.Checksum
	}
	type size struct{ d, decodes int }
	sizes := []size{{10, 300}, {20, 200}, {40, 200}, {70, 100}, {100, 100}, {200, 100}, {1000, 3}}
	if *differences > 0 {
		sizes = []size{{*differences, 1}}
	}
	for _, c := range sizes {
		for _, changed := range []int{0, c.d / 2, c.d} {
			decodes := c.decodes * *trials
			stalled, wrong, undone, refused, most, sum := 0, 0, 0, 0, 0.0, 0
			cells := make([]int, 0, decodes)
			for range decodes {
				o := decodeOnce(t, r, index, c.d, changed)
				cells, sum = append(cells, o.cells), sum+o.cells
				undone, refused = undone+o.undone, refused+o.refused
				most = max(most, float64(o.acts)/float64(o.cells))
				if o.stalled {
					stalled++
				}
				if o.wrong {
					wrong++
				}
			}
			slices.Sort(cells)
			mean, count := float64(sum)/float64(decodes), float64(decodes)
			t.Logf("%d differences, %d of them changes, %d decodes: %.3f cells a difference, 99th percentile %.2f, %.2f bytes; %.4f put back and %.4f refused a decode, %.2f acts a cell at most; %d stalled, %d wrong (seed %d)",
				c.d, changed, decodes, mean/float64(c.d), float64(cells[decodes*99/100])/float64(c.d), mean*CellSize/float64(c.d),
				float64(undone)/count, float64(refused)/count, most, stalled, wrong, seed)
			if wrong > 0 {
				t.Errorf("%d decodes ended with what is not so", wrong)
			}
			if stalled > 1+decodes/10_000 {
				t.Errorf("%d of %d decodes of %d differences stalled", stalled, decodes, c.d)
			}
			if float64(undone) > 0.05*count+10 {
				t.Errorf("%d pairs were put back in %d decodes", undone, decodes)
			}
			if most > actsACell/2 {
				t.Errorf("%.2f acts a cell", most)
			}
		}
	}
}

// TestPassesByChance counts how often cells of several differences pass the tests, and holds
// it to what the decoder's bounds follow from:
//
//	count   a test of cell j passes with probability
//	  1     2^−8 · v(j) · (1 − n/p)    a checksum of k, which belongs to j and is not held
//	  0     2^−8 · v(j) · n/p          k is held
//	 −1     v(j) · n/p²                k is held with just this checksum
//
// for n keys held of p. Here one index in four is held.
func TestPassesByChance(t *testing.T) {
	const seed, share, m = 32, 4, 24
	for _, c := range []struct {
		count uint8
		rate  float64
	}{{1, 1.0 / 256 * (1 - 1.0/share)}, {0, 1.0 / 256 / share}, {countMask, 0}} {
		r := rand.New(rand.NewPCG(seed, uint64(c.count)))
		d := NewSourceDecoder(Key{1}, zeros{}, nothing)
		tests, passed, want := 0, 0, 0.0
		for range 4000 * *trials {
			for at := range int32(m) {
				sum := severalDifferences(r, c.count)
				if sum.S1 == 0 || sum.S2 == 0 {
					continue
				}
				tests++
				want += c.rate * d.words.tables.visiting(int(at))
				k := Index(keyhash.Mul(sum.S2, keyhash.Inv(sum.S1)))
				if !d.plausible(&pick{cell: sum, at: at}, k) {
					continue
				}
				now := Checksum(0)
				if fold(uint64(k), mixer)%share == 0 {
					now = Seal(k, fold(uint64(k), increment)>>30)
				}
				if _, ok := theirsOf(&sum, k, now); ok {
					passed++
				}
			}
		}
		t.Logf("count %d: %d of %d tests pass, want %.1f", c.count, passed, tests, want)
		if math.Abs(float64(passed)-want) > 5*math.Sqrt(want)+3 {
			t.Errorf("count %d: %d of %d tests pass, want %.1f (seed %d)", c.count, passed, tests, want, seed)
		}
	}
}

// severalDifferences is a cell with the given count that holds two or three
// differences of different indices.
func severalDifferences(r *rand.Rand, count uint8) (sum Cell) {
	add := func(times uint8) {
		c := cellOf(randomPair(r))
		if times == 1 {
			sum.add(&c)
		} else {
			sum.sub(&c)
		}
	}
	mismatch := func() {
		a := randomPair(r)
		b := sealed(a.Index, r.Uint64N(1<<34))
		plus, minus := cellOf(a), cellOf(b)
		sum.add(&plus)
		sum.sub(&minus)
	}
	if count == 0 {
		mismatch()
	} else {
		add(count)
	}
	if r.IntN(2) == 0 {
		mismatch()
	} else {
		add(1)
		add(countMask)
	}
	return sum
}
