package iblt

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPlaces: each kind of placement gives each key distinct cells, one of each
// subtable where there are some, and all cells about as often.
func TestPlaces(t *testing.T) {
	const seed, keys = 2, 20_000
	for _, config := range []TableConfig{
		{Cells: 103, Hashes: 5},
		{Cells: 103, Hashes: 5, Quotient: true},
		{Cells: 103, Hashes: 5, Placement: Distinct},
		{Cells: 5, Hashes: 5},
		{Cells: 5, Hashes: 5, Placement: Distinct},
		{Cells: 103, Placement: Distinct, Degrees: Irregular()},
		{Cells: 32, Hashes: 32, Placement: Distinct},
	} {
		l, err := NewLayout(config)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 0))
		hits := make([]int, config.Cells)
		degrees := map[int]int{}
		for range keys {
			places := l.Places(nil, r.Uint64())
			degrees[len(places)]++
			for i, at := range places {
				hits[at]++
				if config.Placement == Subtables && l.subtable(int32(at)) != i || slices.Contains(places[:i], at) {
					t.Fatalf("%+v: places %v", config, places)
				}
			}
		}
		if len(config.Degrees) > 0 {
			// 11.3 % of the keys have 21 cells; 6 standard errors.
			if share := float64(degrees[21]) / keys; len(degrees) != 2 || math.Abs(share-0.113) > 6*math.Sqrt(0.113*0.887/keys) {
				t.Errorf("%+v: degrees %v", config, degrees)
			}
			continue
		}
		for at, n := range hits {
			share := float64(config.Hashes) / float64(config.Cells)
			if config.Placement == Subtables {
				i := l.subtable(int32(at))
				share = 1 / float64(l.starts[i+1]-l.starts[i])
			}
			if off := math.Abs(float64(n) - keys*share); off > 6*math.Sqrt(keys*share*(1-share)+1) {
				t.Errorf("%+v: cell %d has %d of %d keys", config, at, n, keys)
			}
		}
	}
}

// TestSubtableOfCell compares with the bounds themselves, where sizes differ
// by one.
func TestSubtableOfCell(t *testing.T) {
	for hashes := 1; hashes <= MaxHashes; hashes++ {
		for cells := hashes; cells <= hashes+70; cells++ {
			l, err := NewLayout(TableConfig{Cells: cells, Hashes: hashes})
			if err != nil {
				t.Fatal(err)
			}
			for at := range cells {
				i := l.subtable(int32(at))
				if at < l.starts[i] || at >= l.starts[i+1] {
					t.Fatalf("cell %d of %d in %d subtables is in %d, [%d, %d)", at, cells, hashes, i, l.starts[i], l.starts[i+1])
				}
			}
		}
	}
}

// TestQuotients: the permutation can be undone, and what a cell keeps gives the
// key back.
func TestQuotients(t *testing.T) {
	l, err := NewLayout(TableConfig{Cells: 1000, Hashes: 3, Seed: 9, Quotient: true})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 0))
	for _, x := range []uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<64 - 1, r.Uint64(), r.Uint64()} {
		e := l.hash(x, 0)
		for i, at := range l.of(&e, new(places)) {
			if got := l.restore(i, l.permute(i, x)); got != x {
				t.Errorf("%d is permuted and restored to %d", x, got)
			}
			if got, ok := l.key(at.code, at.cell); !ok || got != x || at.code > l.keyMask {
				t.Errorf("cell %d keeps %d of %d, from which comes %d", at.cell, at.code, x, got)
			}
		}
	}
	if l.keyMask != 1<<56-1 { // ⌈log2(2^64/333)⌉
		t.Errorf("quotients have a mask of %x", l.keyMask)
	}
	if _, ok := l.key(l.keyMask, 332); ok {
		t.Error("a quotient beyond all keys gives one")
	}
}

// TestDivide tries all sums and counts of a small width, against
// multiplication.
func TestDivide(t *testing.T) {
	const width, mask = 6, 1<<6 - 1
	for count := uint64(1); count < 40; count++ {
		for sum := range uint64(mask + 1) {
			var want []uint64
			for q := range uint64(mask + 1) {
				if q*count&mask == sum {
					want = append(want, q)
				}
			}
			got := divide(sum, count, width)
			if count%32 == 0 {
				if len(want) > 0 && (got.n != 1 || got.quotient(0) != want[0]) {
					t.Fatalf("%d/%d: %+v, want %d", sum, count, got, want[0])
				}
				continue
			}
			var all []uint64
			for i := range got.n {
				all = append(all, got.quotient(i))
			}
			if !slices.Equal(all, want) {
				t.Fatalf("%d/%d modulo 2^%d: %v, want %v", sum, count, width, all, want)
			}
		}
	}
	for _, a := range []uint64{1, 3, 1<<64 - 1, 0x123456789abcdef1} {
		if inverse(a)*a != 1 {
			t.Errorf("the inverse of %d is %d", a, inverse(a))
		}
	}
}

func TestTableConfigs(t *testing.T) {
	good := TableConfig{Cells: 10, Hashes: 3}
	for name, spoil := range map[string]func(c *TableConfig){
		"no cells":                func(c *TableConfig) { c.Cells = 0 },
		"fewer cells than hashes": func(c *TableConfig) { c.Cells = 2 },
		"too many cells":          func(c *TableConfig) { c.Cells = MaxTableCells + 1 },
		"no hashes":               func(c *TableConfig) { c.Hashes = 0 },
		"too many hashes":         func(c *TableConfig) { c.Hashes = MaxHashes + 1 },
		"hashes and degrees":      func(c *TableConfig) { c.Placement, c.Degrees = Distinct, []Degree{{3, 1}} },
		"degrees in subtables":    func(c *TableConfig) { c.Hashes, c.Degrees = 0, []Degree{{3, 1}} },
		"a degree of none":        func(c *TableConfig) { c.Hashes, c.Placement, c.Degrees = 0, Distinct, []Degree{{0, 1}} },
		"a share of none":         func(c *TableConfig) { c.Hashes, c.Placement, c.Degrees = 0, Distinct, []Degree{{3, 0}} },
		"too many degrees":        func(c *TableConfig) { c.Hashes, c.Placement, c.Degrees = 0, Distinct, make([]Degree, 17) },
		"odd check bits":          func(c *TableConfig) { c.CheckBits = 33 },
		"too many check bits":     func(c *TableConfig) { c.CheckBits = 72 },
		"quotient, one table":     func(c *TableConfig) { c.Placement, c.Quotient = Distinct, true },
		"unknown placement":       func(c *TableConfig) { c.Placement = 2 },
		"unknown sums":            func(c *TableConfig) { c.Sums = 2 },
		"unknown checks":          func(c *TableConfig) { c.Checks = 4 },
		"products, no xor":        func(c *TableConfig) { c.Checks = CheckProducts },
		"unknown encoding":        func(c *TableConfig) { c.Encoding = 2 },
	} {
		c := good
		spoil(&c)
		if _, err := NewTable(c); !errors.Is(err, ErrTableConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	table, err := NewTable(good)
	if err != nil {
		t.Fatal(err)
	}
	if c := table.Config(); c.CheckBits != 64 || c.Cells != 10 {
		t.Errorf("the configuration is %+v", c)
	}
	if err := new(Table).Subtract(table); !errors.Is(err, ErrTableConfig) {
		t.Errorf("subtract from a zero table: %v", err)
	}
	if _, err := new(Table).MarshalBinary(); !errors.Is(err, ErrTableConfig) {
		t.Errorf("write a zero table: %v", err)
	}
	other, err := NewTable(TableConfig{Cells: 10, Hashes: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Subtract(other); !errors.Is(err, ErrTableConfig) {
		t.Errorf("subtract a table with another seed: %v", err)
	}
}
