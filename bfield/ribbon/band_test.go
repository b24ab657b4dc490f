package ribbon

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// equation is a row with its column, as insert takes it.
type equation struct {
	column               int
	coefficients, result uint64
}

// dense is the stupid twin of band: rows over all columns, one bit a byte, the
// result's bits behind them, eliminated as in a textbook.
type dense struct {
	columns int
	rows    [][]byte
}

// consistent says whether the equation agrees with those added before, and
// adds it if it does.
func (d *dense) consistent(e equation) (agrees, adds bool) {
	row := make([]byte, d.columns+64)
	for i := range 64 {
		if e.coefficients>>i&1 != 0 {
			row[e.column+i] = 1
		}
		row[d.columns+i] = byte(e.result >> i & 1)
	}
	for _, r := range d.rows {
		if row[first(r)] != 0 {
			for i := range row {
				row[i] ^= r[i]
			}
		}
	}
	switch f := first(row); {
	case f < d.columns:
		d.rows = append(d.rows, row)
		return true, true
	default:
		return f == len(row), false
	}
}

// first is the index of the first one.
func first(row []byte) int {
	for i, b := range row {
		if b != 0 {
			return i
		}
	}
	return len(row)
}

func drawEquation(r *rand.Rand, slots int, values uint64) equation {
	e := equation{r.IntN(slots - window + 1), r.Uint64() | 1, r.Uint64() & values}
	if r.IntN(3) == 0 {
		e.coefficients &= 0xff // short rows depend on each other more often
	}
	return e
}

// A band takes the same equations as dense elimination, and its solution
// fulfils all that it took.
func TestBandAgainstDenseElimination(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 0))
		slots := 64 * (1 + r.IntN(3))
		width := 1 + r.IntN(64)
		b, d := make(band, slots), dense{columns: slots}
		var taken []equation
		for range r.IntN(2 * slots) {
			e := drawEquation(r, slots, 1<<width-1)
			if len(taken) > 0 && r.IntN(8) == 0 {
				e = taken[r.IntN(len(taken))]
			}
			agrees, adds := d.consistent(e)
			slot := b.insert(e.column, e.coefficients, e.result)
			if (slot != inconsistent) != agrees || (slot >= 0) != adds {
				t.Fatalf("equation %v: insert returns %d; it agrees: %v, it is new: %v", e, slot, agrees, adds)
			}
			if agrees {
				taken = append(taken, e)
			}
		}
		checkSolution(t, b, width, taken)
	})
}

// checkSolution multiplies the solution with each equation, bit by bit.
func checkSolution(t *rapid.T, b band, width int, taken []equation) {
	words := make([]uint64, len(b)/64*width)
	b.solve(words, width)
	for _, e := range taken {
		if got := product(words, width, e); got != e.result {
			t.Fatalf("width %d, equation %v: the solution gives %#x", width, e, got)
		}
	}
	for slot, r := range b {
		if got := slotBits(words, width, slot); r.coefficients == 0 && got != 0 {
			t.Fatalf("width %d, free slot %d: %#x, want 0", width, slot, got)
		}
	}
}

// product adds the slots under an equation.
func product(words []uint64, width int, e equation) (v uint64) {
	for i := range 64 {
		if e.coefficients>>i&1 != 0 {
			v ^= slotBits(words, width, e.column+i)
		}
	}
	return v
}

func slotBits(words []uint64, width, slot int) (v uint64) {
	for j := range width {
		v |= words[slot/64*width+j] >> (slot % 64) & 1 << j
	}
	return v
}

// Taking back the last rows leaves the band as it was before them.
func TestRemoveTakesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		b := make(band, 192)
		for range r.IntN(150) {
			e := drawEquation(r, len(b), 255)
			b.insert(e.column, e.coefficients, e.result)
		}
		before := append(band(nil), b...)
		var placed []int
		for range r.IntN(100) {
			e := drawEquation(r, len(b), 255)
			if slot := b.insert(e.column, e.coefficients, e.result); slot >= 0 {
				placed = append(placed, slot)
			}
		}
		for i := len(placed) - 1; i >= 0; i-- {
			b.remove(placed[i])
		}
		for i := range b {
			if b[i] != before[i] {
				t.Fatalf("slot %d differs", i)
			}
		}
	})
}

// A place reads each range of columns as the product says, at every offset.
func TestPlaceReadsTheProduct(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for width := 1; width <= 64; width++ {
		blocks := make([]uint64, 2*width)
		for i := range blocks {
			blocks[i] = r.Uint64()
		}
		for offset := range uint64(64) {
			p := place{0, r.Uint64(), offset}
			tb := table{values: width, levels: []level{{words: blocks}}}
			want := product(blocks, width, equation{int(offset), coefficients(p.hash), 0})
			from := r.IntN(width)
			to := from + 1 + r.IntN(width-from)
			if got, want := tb.value(p, from, to), want>>from<<(64-(to-from))>>(64-(to-from)); got != want {
				t.Fatalf("width %d, columns %d to %d, offset %d: %#x, want %#x (seed %d)", width, from, to, offset, got, want, seed)
			}
		}
	}
}

// The stub agrees with its twin, and reads no word beside the columns.
func FuzzParities(f *testing.F) {
	f.Add(uint64(1), uint8(8), uint8(0), uint8(8), uint64(1)<<63, ^uint64(0))
	f.Add(uint64(2), uint8(64), uint8(3), uint8(50), uint64(0x123456789), uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64, width, from, n uint8, first, second uint64) {
		if !wide {
			t.Skip("the processor is not wide")
		}
		w := 1 + int(width)%64
		begin := int(from) % w
		count := 1 + int(n)%(w-begin)
		r := rand.New(rand.NewPCG(seed, 0))
		blocks := make([]uint64, 2*w)
		for i := range blocks {
			blocks[i] = r.Uint64()
		}
		got := parities(&blocks[begin], w, count, first, second)
		want := paritiesGo(blocks[begin:begin+count], blocks[w+begin:w+begin+count], first, second)
		if got != want {
			t.Fatalf("width %d, columns %d to %d: %#x, want %#x", w, begin, begin+count, got, want)
		}
	})
}
