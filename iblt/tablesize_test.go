package iblt

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// TestTableSizes measures what each choice of section 4 saves, in bytes, for
// the paper's table of 10,000 keys that answers look-ups, for one that lists
// only, and for a sparse one. It prints the table of docs/IBLT.md, and holds
// it to the parts that stand there.
func TestTableSizes(t *testing.T) {
	const seed = 16
	type load struct {
		name         string
		keys, cells  int
		short        bool // keys and values below 2^32
		irregularToo bool
	}
	loads := []load{
		{"10,000 keys, 80,000 cells", 10_000, 80_000, false, false},
		{"10,000 keys, 14,600 cells", 10_000, 14_600, false, true},
		{"500 keys, 80,000 cells", 500, 80_000, false, false},
		{"10,000 keys below 2^32, 80,000 cells", 10_000, 80_000, true, false},
	}
	size := func(config TableConfig, l load) int {
		table := newTable(t, config)
		r := rand.New(rand.NewPCG(seed, 0))
		for range l.keys {
			x, y := r.Uint64(), r.Uint64()
			if l.short {
				x, y = x>>32, y>>32
			}
			table.Insert(x, y)
		}
		b, err := table.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if !table.Drain().Complete {
			t.Fatalf("%+v does not list %s", config, l.name)
		}
		return len(b)
	}
	choices := []struct {
		name   string
		choose func(c *TableConfig)
		want   [4]float64 // of the first line, for each load
	}{
		{"Words, checks of 64 bits", func(c *TableConfig) { c.Encoding = Words }, [4]float64{1, 1, 1, 1}},
		{"Words, checks of 32 bits", func(c *TableConfig) { c.Encoding, c.CheckBits = Words, 32 }, [4]float64{0.778, 0.778, 0.778, 0.778}},
		{"Words, no checks", func(c *TableConfig) { c.Encoding, c.Checks = Words, NoChecks }, [4]float64{0.556, 0.556, 0.556, 0.556}},
		{"Packed, checks of 64 bits", func(*TableConfig) {}, [4]float64{0.272, 0.832, 0.018, 0.178}},
		{"Packed, checks of 32 bits", func(c *TableConfig) { c.CheckBits = 32 }, [4]float64{0.243, 0.642, 0.017, 0.149}},
		{"the same, XOR", func(c *TableConfig) { c.CheckBits, c.Sums = 32, XOR }, [4]float64{0.243, 0.642, 0.017, 0.143}},
		{"the same, quotients", func(c *TableConfig) { c.CheckBits, c.Quotient = 32, true }, [4]float64{0.222, 0.603, 0.016, 0.175}},
		{"Packed, check of keys, 32 bits", func(c *TableConfig) { c.CheckBits, c.Checks = 32, CheckKeys }, [4]float64{0.228, 0.546, 0.017, 0.134}},
		{"Packed, no checks, quotients", func(c *TableConfig) { c.Checks, c.Quotient = NoChecks, true }, [4]float64{0.192, 0.412, 0.016, 0.145}},
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.001 {
			t.Errorf("%s: %.4f of the first line, not %.3f", what, got, want)
		}
	}
	for at, l := range loads {
		base := TableConfig{Cells: l.cells, Hashes: 5, Seed: seed}
		first := 0
		for i, choice := range choices {
			config := base
			choice.choose(&config)
			n := size(config, l)
			if i == 0 {
				first = n
			}
			t.Logf("| %s | %s | %d | %.1f | %.3f |", l.name, choice.name, n, float64(n)/float64(l.keys), float64(n)/float64(first))
			near(l.name+", "+choice.name, float64(n)/float64(first), choice.want[at])
		}
		if l.irregularToo {
			config := TableConfig{Cells: 11_300, Placement: Distinct, Degrees: Irregular(), CheckBits: 32, Seed: seed}
			n := size(config, l)
			t.Logf("| %s | Packed, checks of 32 bits, irregular degrees, 11,300 cells | %d | %.1f | %.3f |", l.name, n, float64(n)/float64(l.keys), float64(n)/float64(first))
			near(l.name+", irregular", float64(n)/float64(first), 0.517)
		}
		t.Logf("| %s | the listing itself, 16 bytes a pair | %d | 16.0 | %.3f |", l.name, 16*l.keys, float64(16*l.keys)/float64(first))
	}
}

// TestTableSavings measures each of the savings that Packed combines by itself,
// in bytes, from the cells and not from the encoder; together they are exactly
// what the encoder saves. It prints a table of docs/PAPER.md.
func TestTableSavings(t *testing.T) {
	const seed = 21
	for _, l := range []struct {
		name        string
		keys, cells int
		keyBits     int
		quotient    bool
	}{
		{"10,000 keys, 80,000 cells", 10_000, 80_000, 64, false},
		{"the same, quotients", 10_000, 80_000, 64, true},
		{"10,000 keys, 14,600 cells", 10_000, 14_600, 64, false},
		{"500 keys, 80,000 cells", 500, 80_000, 64, false},
		{"10,000 keys below 2^32, 80,000 cells", 10_000, 80_000, 32, false},
	} {
		config := TableConfig{Cells: l.cells, Hashes: 5, Seed: seed, CheckBits: 32, Quotient: l.quotient}
		table := newTable(t, config)
		r := rand.New(rand.NewPCG(seed, 0))
		for range l.keys {
			table.Insert(r.Uint64()>>(64-l.keyBits), r.Uint64()>>(64-l.keyBits))
		}
		var zeros, counts, pairs, keyWidth, valueWidth int
		for i := range l.cells {
			c := table.Cell(i)
			if c == (TableCell{}) {
				zeros++
				continue
			}
			counts += 32 - (2*bits.Len64(countCode(c.Count)) - 1)
			// The sums of so few keys are of one pair if the count is 1.
			if c.Count == 1 {
				pairs++
			}
			// A bit more than the widest sum takes: its sign.
			keyWidth = max(keyWidth, min(64, 1+bits.Len64(c.KeySum)))
			valueWidth = max(valueWidth, min(64, 1+bits.Len64(c.ValueSum)))
		}
		if l.quotient {
			keyWidth = bits.Len64(table.layout.keyMask)
		}
		occupied := l.cells - zeros
		cell := 8 * table.Config().CellBytes()
		bitmap := (l.cells + 7) / 8
		savings := []int{zeros*cell - 8*bitmap, counts, occupied * (128 - keyWidth - valueWidth), pairs*2*config.CheckBits - pairs}
		saved := 0
		for _, n := range savings {
			saved += n
		}
		packed, err := table.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		plain := tableHeader + l.cells*cell/8
		if want := tableHeader + 2 + (l.cells*cell-saved+7)/8; len(packed) != want {
			t.Errorf("%s: %d bytes, from the cells %d", l.name, len(packed), want)
		}
		t.Logf("| %s | %d | %d | %d | %d | %d | %d |", l.name, plain, savings[0]/8, savings[1]/8, savings[2]/8, savings[3]/8, len(packed))
	}
}
