package iblt

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestApply: a table whose cells are kept elsewhere is the same table.
func TestApply(t *testing.T) {
	for _, config := range []TableConfig{
		{Cells: 50, Hashes: 3},
		{Cells: 50, Hashes: 3, Sums: XOR, CheckBits: 16},
		{Cells: 50, Hashes: 3, Quotient: true},
		{Cells: 50, Hashes: 3, Sums: XOR, Checks: CheckProducts, CheckBits: 16},
		{Cells: 50, Placement: Distinct, Degrees: Irregular(), Checks: CheckKeys},
	} {
		layout, err := NewLayout(config)
		if err != nil {
			t.Fatal(err)
		}
		table, cells := newTable(t, config), make([]TableCell, config.Cells)
		r := rand.New(rand.NewPCG(17, 0))
		for i := range 40 {
			x, y, times := r.Uint64(), r.Uint64(), int32(i%3-1)
			for _, at := range layout.Places(nil, x) {
				layout.Apply(&cells[at], at, x, y, times)
			}
			layout.Apply(&cells[0], 0, x, y, 0)
			switch times {
			case 1:
				table.Insert(x, y)
			case -1:
				table.Delete(x, y)
			}
		}
		elsewhere := newTable(t, config)
		for at, c := range cells {
			elsewhere.SetCell(at, c)
			if elsewhere.Cell(at) != table.Cell(at) {
				t.Fatalf("%+v: cell %d is %+v, not %+v", config, at, c, table.Cell(at))
			}
		}
		// A cell that is not among the key's stays as it is.
		var stray TableCell
		for at := range config.Cells {
			layout.Apply(&stray, at, 1, 1, 1)
		}
		if n := len(layout.Places(nil, 1)); int(stray.Count) != n {
			t.Errorf("%+v: applied to %d cells, of %d", config, stray.Count, n)
		}
	}
}

// TestCloneIsIndependent: neither a clone nor a listing shares cells.
func TestCloneIsIndependent(t *testing.T) {
	table := newTable(t, TableConfig{Cells: 50, Hashes: 3})
	table.Insert(1, 2)
	clone := table.Clone()
	clone.Delete(1, 2)
	if !clone.drained() || table.drained() {
		t.Error("a change of the clone is one of the table")
	}
	if l := table.Drain(); !l.Complete || !table.drained() {
		t.Error("a drained table is not empty")
	}
}

// TestListingWork: a listing tests each cell twice and then those that changed,
// at every load and size: twice the cells take twice the work.
func TestListingWork(t *testing.T) {
	const k = 4
	for _, cells := range []int{1000, 64_000} {
		for _, load := range []float64{0.1, 0.7, 0.77, 0.9, 3} { // keys a cell; c_4 is at 0.772
			table := newTable(t, TableConfig{Cells: cells, Hashes: k})
			for x := range uint64(load * float64(cells)) {
				table.Insert(x, x)
			}
			p := table.newPeeling()
			p.scan()
			if found := len(p.found.Inserted); p.tests > 2*cells+k*found {
				t.Errorf("%d cells, %.2f keys each: %d tests for %d pairs", cells, load, p.tests, found)
			}
		}
	}
}

func BenchmarkTable(b *testing.B) {
	for _, config := range []TableConfig{
		{Cells: 14_600, Hashes: 5},
		{Cells: 80_000, Hashes: 5},
		{Cells: 14_600, Hashes: 5, Sums: XOR},
		{Cells: 14_600, Hashes: 5, Quotient: true},
		{Cells: 14_600, Hashes: 5, Sums: XOR, Checks: CheckProducts},
		{Cells: 11_300, Placement: Distinct, Degrees: Irregular()},
	} {
		const keys = 10_000
		table := newTable(b, config)
		for x := range uint64(keys) {
			table.Insert(x, x)
		}
		name := fmt.Sprintf("cells=%d,sums=%d,checks=%d,quotient=%v,degrees=%d", config.Cells, config.Sums, config.Checks, config.Quotient, len(config.Degrees))
		b.Run("Insert/"+name, func(b *testing.B) {
			t := table.Clone()
			for x := uint64(0); b.Loop(); x++ {
				t.Insert(x, x)
			}
		})
		b.Run("Get/"+name, func(b *testing.B) {
			for x := uint64(0); b.Loop(); x++ {
				table.Get(x % keys)
			}
		})
		b.Run("ListEntries/"+name, func(b *testing.B) {
			for b.Loop() {
				if !table.ListEntries().Complete {
					b.Fatal("incomplete")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
		})
	}
}
