package rateless

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// batch is how many cells of a mapping the tests draw at once. A pair has some 25 below
// 2^14.
const batch = 32

// cellsOf is the naive mapping, by its definition: the cells of k below end.
func cellsOf(w *words, k Index, end uint64) []uint64 {
	seed := w.seed(k)
	word := func(i int) uint64 { return draw(seed + uint64(i)*increment) }
	cells := []uint64{}
	if end > 0 {
		cells = append(cells, 0)
	}
	for j := uint64(1); j < min(join, end); j++ {
		number := 0 // of the opposite digits of eight words, the first the lowest
		for i := range digits {
			number |= int(^word(1+i)>>j&1) << i
		}
		if number < int(openings[j]) {
			cells = append(cells, j)
		}
	}
	class, upTo := 0, uint64(classes[0].share)
	for seed>>56 >= upTo {
		class++
		upTo += uint64(classes[class].share)
	}
	stride := uint64(classes[class].stride)
	edge := joinEdge - seed%(1<<32)*stride/(1<<32)
	for b := 0; ; b++ {
		low, high := uint64(w.tables.edges[min(edge, lastEdge)]), uint64(w.tables.edges[min(edge+stride, lastEdge)])
		if low >= end {
			return cells
		}
		if at := low + word(9+b)/(1<<32)*(high-low)/(1<<32); at >= join && at < end {
			cells = append(cells, at)
		}
		edge += stride
	}
}

// TestMappings compares the ways in which the cells of an index are drawn: in
// order, of a window, and one by one.
func TestMappings(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	w := expand(Key{7})
	for range 2000 {
		k := randomIndex(r)
		from, end := r.Uint64N(5000), r.Uint64N(1<<14)
		if r.IntN(2) == 0 {
			from, end = r.Uint64N(70), r.Uint64N(200)
		}
		want := cellsOf(&w, k, end)
		var got []uint64
		buf := make([]uint32, 1+r.IntN(8))
		for m := w.start(k); m.at < end; {
			for _, at := range buf[:m.fill(w.tables, buf, end)] {
				got = append(got, uint64(at))
			}
		}
		if !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Fatalf("seed %d: cells below %d of %d are %v, want %v", seed, end, k, got, want)
		}
		for _, at := range []uint64{from, r.Uint64N(200), r.Uint64N(MaxCells)} {
			_, want := slices.BinarySearch(cellsOf(&w, k, at+1), at)
			if got := w.belongs(k, at); got != want {
				t.Fatalf("seed %d: %d belongs to cell %d: %v, want %v", seed, k, at, got, want)
			}
		}
		for _, at := range want {
			if !w.belongs(k, at) {
				t.Fatalf("seed %d: %d does not belong to its cell %d", seed, k, at)
			}
		}
		if from > end {
			continue
		}
		window := NewWindow(Key{7}, int(from), int(end))
		window.Add(sealed(k, 1))
		for i, c := range window.Prefix(window.Len()) {
			if _, in := slices.BinarySearch(want, from+uint64(i)); in != (c.Count == 1) {
				t.Fatalf("seed %d: cell %d of [%d, %d) holds %d: %v, want %v", seed, from+uint64(i), from, end, k, c.Count == 1, in)
			}
		}
	}
}

// TestMappingsEnd: the cells of an index end before MaxCells, and the last ones
// are found by one draw, too.
func TestMappingsEnd(t *testing.T) {
	w := expand(Key{8})
	for k := Index(1); k <= 3000; k++ {
		cells := cellsOf(&w, k, MaxCells)
		if last := cells[len(cells)-1]; last >= MaxCells || !w.belongs(k, last) {
			t.Fatalf("the last cell of %d is %d", k, last)
		}
		var got int
		var buf [batch]uint32
		for m := w.start(k); m.at < MaxCells; {
			got += m.fill(w.tables, buf[:], MaxCells)
		}
		if got != len(cells) {
			t.Fatalf("%d has %d cells, want %d", k, got, len(cells))
		}
	}
}

// TestEdges compares the edges with their definition, and the search of them
// with a scan.
func TestEdges(t *testing.T) {
	tables := theTables()
	for n, edge := range tables.edges {
		n = min(n, lastEdge)
		power := func(x uint32) *big.Int {
			return new(big.Int).Exp(big.NewInt(int64(x)), big.NewInt(octaveEdges), nil)
		}
		root := new(big.Int).Lsh(big.NewInt(1), uint(n))
		if power(edge).Cmp(root) > 0 || power(edge+1).Cmp(root) <= 0 {
			t.Fatalf("edge %d is %d", n, edge)
		}
	}
	if tables.edges[joinEdge] != join || tables.edges[lastEdge] != MaxCells+1 {
		t.Fatalf("the blocks go from %d to %d", tables.edges[joinEdge], tables.edges[lastEdge])
	}
	r := rand.New(rand.NewPCG(2, 0))
	check := func(at uint64) {
		if edge := tables.edgeAt(at); uint64(tables.edges[edge]) > at || uint64(tables.edges[edge+1]) <= at {
			t.Fatalf("the edge of %d is %d, at %d", at, edge, tables.edges[edge])
		}
	}
	for at := uint64(join); at < 5000; at++ {
		check(at)
		check(uint64(MaxCells) - at)
		check(join + r.Uint64N(MaxCells-join))
	}
	for _, edge := range tables.edges[joinEdge : lastEdge+1] {
		check(uint64(edge) - min(1, uint64(edge)-join))
		check(min(uint64(edge), MaxCells))
	}
}

// TestVisiting counts the cells of many indices against the probabilities
// that the estimate uses.
func TestVisiting(t *testing.T) {
	const seed, mappings, end = 3, 200_000, 1 << 16
	w := expand(Key{9})
	visits := make([]int, end)
	r := rand.New(rand.NewPCG(seed, 0))
	var cells [batch]uint32
	for range mappings {
		for m := w.start(randomIndex(r)); m.at < end; {
			for _, at := range cells[:m.fill(w.tables, cells[:], end)] {
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
		p := w.tables.visiting(j)
		z := deviation(float64(visits[j]), mappings*p, mappings*p*(1-p))
		worst, squares, tested = max(worst, math.Abs(z)), squares+z*z, tested+1
	}
	// 4095 deviations, each standard normal: the largest is below 5.5 but once
	// in 6,000 tests, their squares' mean is 1 ± 0.022.
	t.Logf("worst deviation %.2f, mean square %.3f (seed %d)", worst, squares/float64(tested), seed)
	if worst > 5.5 || math.Abs(squares/float64(tested)-1) > 0.12 {
		t.Errorf("visits deviate by up to %.2f, mean square %.3f", worst, squares/float64(tested))
	}
	for from := join; from < end; from *= 2 {
		got, want := 0, 0.0
		for j := from; j < 2*from; j++ {
			got += visits[j]
			want += mappings * w.tables.visiting(j)
		}
		// Visits of one mapping attract no others: their number is binomial
		// or narrower, up to the spread between the classes.
		z := deviation(float64(got), want, want*4)
		if math.Abs(z) > 5 {
			t.Errorf("cells [%d, %d) hold %d pairs, want %.0f", from, 2*from, got, want)
		}
	}
}

// TestClasses counts the classes and first edges of random indices.
func TestClasses(t *testing.T) {
	const seed, n = 5, 100_000
	r := rand.New(rand.NewPCG(seed, 0))
	w := expand(Key{3})
	counts := map[uint32]float64{}
	backs := map[uint32]float64{}
	for range n {
		b := w.tables.blocks(w.seed(randomIndex(r)))
		counts[b.stride]++
		backs[b.stride] += float64(joinEdge-b.edge) / float64(b.stride-1)
		if b.edge > joinEdge || b.edge+b.stride <= joinEdge {
			t.Fatalf("blocks of stride %d begin at edge %d", b.stride, b.edge)
		}
	}
	whole := 0
	for _, c := range classes {
		share := float64(c.share) / 256
		whole += int(c.share)
		got := counts[uint32(c.stride)]
		if want := share * n; math.Abs(got-want) > 6*math.Sqrt(n*share*(1-share)) {
			t.Errorf("stride %d has %.0f of %d indices, want %.0f", c.stride, got, n, want)
		}
		if mean := backs[uint32(c.stride)] / got; math.Abs(mean-.5) > 6*math.Sqrt(.13/got) {
			t.Errorf("the first edges of stride %d lie %.3f of it before join, want 1/2", c.stride, mean)
		}
		if c.stride > maxStride {
			t.Errorf("stride %d is above %d", c.stride, maxStride)
		}
	}
	if whole != 256 {
		t.Errorf("the shares add up to %d", whole)
	}
}

// TestManyCells adds indices to all of their cells in a long sketch, some of which have many.
func TestManyCells(t *testing.T) {
	const end = 1 << 18
	w := expand(Key{4})
	most := 0
	for k := Index(1); k <= 40; k++ {
		s := NewSketch(Key{4}, end)
		s.Add(sealed(k, 1))
		var got []uint64
		for i, c := range s.Prefix(end) {
			if c.Count == 1 {
				got = append(got, uint64(i))
			}
		}
		if want := cellsOf(&w, k, end); !slices.Equal(got, want) {
			t.Fatalf("%d is in the cells %v, want %v", k, got, want)
		}
		most = max(most, len(got))
	}
	if most <= 2*batch {
		t.Errorf("an index has %d cells at most", most)
	}
}
