package iblt

import (
	"math/rand/v2"
	"testing"
)

// TestTableSizes measures what each choice of section 4 saves, in bytes, for
// the paper's table of 10,000 keys that answers look-ups, for one that lists
// only, and for a sparse one. It prints the table of docs/IBLT.md.
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
	}{
		{"Words, checks of 64 bits", func(c *TableConfig) { c.Encoding = Words }},
		{"Words, checks of 32 bits", func(c *TableConfig) { c.Encoding, c.CheckBits = Words, 32 }},
		{"Words, no checks", func(c *TableConfig) { c.Encoding, c.Checks = Words, NoChecks }},
		{"Packed, checks of 64 bits", func(*TableConfig) {}},
		{"Packed, checks of 32 bits", func(c *TableConfig) { c.CheckBits = 32 }},
		{"the same, XOR", func(c *TableConfig) { c.CheckBits, c.Sums = 32, XOR }},
		{"the same, quotients", func(c *TableConfig) { c.CheckBits, c.Quotient = 32, true }},
		{"Packed, check of keys, 32 bits", func(c *TableConfig) { c.CheckBits, c.Checks = 32, CheckKeys }},
		{"Packed, no checks, quotients", func(c *TableConfig) { c.Checks, c.Quotient = NoChecks, true }},
	}
	for _, l := range loads {
		base := TableConfig{Cells: l.cells, Hashes: 5, Seed: seed}
		var first, last int
		for i, choice := range choices {
			config := base
			choice.choose(&config)
			last = size(config, l)
			if i == 0 {
				first = last
			}
			t.Logf("| %s | %s | %d | %.1f | %.3f |", l.name, choice.name, last, float64(last)/float64(l.keys), float64(last)/float64(first))
		}
		if 2*last > first {
			t.Errorf("%s: all savings leave %d of %d bytes", l.name, last, first)
		}
		if l.irregularToo {
			config := TableConfig{Cells: 11_300, Placement: Distinct, Degrees: Irregular(), CheckBits: 32, Seed: seed}
			n := size(config, l)
			t.Logf("| %s | Packed, checks of 32 bits, irregular degrees, 11,300 cells | %d | %.1f | %.3f |", l.name, n, float64(n)/float64(l.keys), float64(n)/float64(first))
		}
		t.Logf("| %s | the listing itself, 16 bytes a pair | %d | 16.0 | %.3f |", l.name, 16*l.keys, float64(16*l.keys)/float64(first))
	}
}
