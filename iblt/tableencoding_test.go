package iblt

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/golden"
)

// goldenTables are small tables of each kind, with pairs of each kind in them.
func goldenTables(t testing.TB) (names []string, tables []*Table) {
	t.Helper()
	for _, c := range []struct {
		name   string
		config TableConfig
	}{
		{"packed", TableConfig{Cells: 12, Hashes: 3, Seed: 1}},
		{"words", TableConfig{Cells: 6, Hashes: 3, Seed: 2, Encoding: Words}},
		{"words, short checks", TableConfig{Cells: 6, Hashes: 2, Seed: 2, Encoding: Words, CheckBits: 24}},
		{"xor", TableConfig{Cells: 12, Hashes: 3, Seed: 3, Sums: XOR, CheckBits: 32}},
		{"quotients", TableConfig{Cells: 12, Hashes: 3, Seed: 4, Quotient: true}},
		{"check of keys", TableConfig{Cells: 12, Hashes: 3, Seed: 5, Checks: CheckKeys}},
		{"no checks", TableConfig{Cells: 12, Hashes: 3, Seed: 6, Checks: NoChecks}},
		{"distinct", TableConfig{Cells: 12, Hashes: 3, Seed: 7, Placement: Distinct}},
		{"irregular", TableConfig{Cells: 30, Seed: 8, Placement: Distinct, Degrees: Irregular()}},
		{"one subtable lost", TableConfig{Cells: 12, Hashes: 3, Seed: 9}},
		{"products", TableConfig{Cells: 12, Hashes: 3, Seed: 10, Sums: XOR, Checks: CheckProducts, CheckBits: 32}},
		{"products, words", TableConfig{Cells: 6, Hashes: 3, Seed: 11, Sums: XOR, Checks: CheckProducts, CheckBits: 32, Encoding: Words}},
	} {
		table := newTable(t, c.config)
		table.Insert(1, 2)
		table.Insert(1<<63+5, 77)
		table.Delete(3, 1<<40)
		if c.config.Sums == Wrapping && c.config.Checks == CheckPairs {
			table.Insert(1, 2)
			table.Delete(1<<63+5, 78)
		}
		if strings.HasSuffix(c.name, "lost") {
			if err := table.Lose(1); err != nil {
				t.Fatal(err)
			}
		}
		names, tables = append(names, c.name), append(tables, table)
	}
	return names, tables
}

var trials = flag.Int("trials", 1, "multiply the trials of TestTableHostile")

// TestGolden pins the bytes of tables, and with them hashes and places. A
// change needs a new tableVersion.
func TestGolden(t *testing.T) {
	var b strings.Builder
	names, tables := goldenTables(t)
	for i, table := range tables {
		bytes, err := table.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n%s\n", names[i], hex.EncodeToString(bytes))
	}
	golden.Compare(t, "testdata/table.txt", b.String())
}

// readTable checks all that is promised of any bytes: a table or ErrTableBytes,
// the same bytes again, and a listing of bounded work.
func readTable(t testing.TB, b []byte) bool {
	t.Helper()
	var table Table
	if err := table.UnmarshalBinary(b); err != nil {
		if !errors.Is(err, ErrTableBytes) || table.layout != nil {
			t.Fatalf("%v; the table is changed: %v", err, table.layout != nil)
		}
		return false
	}
	again, err := table.MarshalBinary()
	if err != nil || string(again) != string(b) {
		t.Fatalf("%x was read, and written as %x (%v)", b, again, err)
	}
	cells := len(table.cells)
	if cells > 8*len(b) {
		t.Fatalf("%d bytes have made %d cells", len(b), cells)
	}
	p := table.Clone().newPeeling()
	p.scan()
	found := len(p.found.Inserted) + len(p.found.Deleted)
	k := table.layout.config.mostHashes()
	if found > cells || p.tests > 2*cells+k*found {
		t.Fatalf("%d pairs came out of %d cells in %d tests", found, cells, p.tests)
	}
	table.Get(1)
	lookups := 0
	r, err := table.Solve(func(x uint64) (uint64, bool) { lookups++; return x, x < 8 })
	if lookups > cells+k*(len(r.Inserted)+len(r.Deleted)+len(r.Mismatched)) {
		t.Fatalf("%d look-ups for %d, %d and %d entries from %d cells", lookups, len(r.Inserted), len(r.Deleted), len(r.Mismatched), cells)
	}
	if products := table.Config().Checks == CheckProducts; products != (err == nil) || len(r.Inserted)+len(r.Deleted)+len(r.Mismatched) > cells {
		t.Fatalf("%d, %d and %d entries from %d cells, %v", len(r.Inserted), len(r.Deleted), len(r.Mismatched), cells, err)
	}
	return true
}

// TestTableHostile spoils written tables in each bit, at each length, and with
// random bytes in place of the cells, and with forged cells; -trials 1000 makes
// two millions, of which more than one is read as a table.
func TestTableHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 0))
	accepted, refused := 0, 0
	try := func(b []byte) {
		t.Helper()
		if readTable(t, b) {
			accepted++
		} else {
			refused++
		}
	}
	_, tables := goldenTables(t)
	for _, table := range tables {
		b, err := table.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if !readTable(t, b) {
			t.Fatal("a written table is refused")
		}
		for n := range len(b) {
			if readTable(t, b[:n]) {
				t.Fatalf("%d of %d bytes are accepted", n, len(b))
			}
		}
		if readTable(t, append(b[:len(b):len(b)], 0)) {
			t.Fatal("a byte too many is accepted")
		}
		for bit := range 8 * len(b) {
			b[bit/8] ^= 1 << (bit % 8)
			try(b)
			b[bit/8] ^= 1 << (bit % 8)
		}
		for range 100 * *trials {
			c := append([]byte(nil), b...)
			for i := tableHeader + 2; i < len(c); i++ {
				c[i] = byte(r.Uint32())
			}
			try(c)
			forged, err := forgedTable(r, table).MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			try(forged)
		}
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
	if accepted < 1000**trials || refused < 500 {
		t.Error("one side of the check was not tried")
	}
}

// forgedTable is a table like the given one whose cells an adversary with the
// seed has chosen: pairs in cells that are theirs and that are not, several times, in
// some of their cells only; and noise.
func forgedTable(r *rand.Rand, like *Table) *Table {
	table := like.Clone()
	table.Reset()
	table.lose(like.lost)
	for at := range table.cells {
		var c TableCell
		switch x := r.Uint64N(8); r.IntN(5) {
		case 0:
			c = TableCell{int32(r.Uint32()), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}
		case 1:
			e := table.layout.hash(x, x)
			c.add(table.layout.config.Sums, x, &e, int64(r.IntN(5)-2))
		case 2:
			table.layout.Apply(&c, at, x, x, int32(r.IntN(5)-2))
		case 3:
			theirs, ours := table.layout.hash(x, x+1), table.layout.hash(x, x)
			c.add(table.layout.config.Sums, x, &theirs, 1)
			c.add(table.layout.config.Sums, x, &ours, -1)
		}
		table.SetCell(at, c)
	}
	return table
}

// TestTableClaims: a header that claims many cells allocates nothing for them.
func TestTableClaims(t *testing.T) {
	b, err := newTable(t, TableConfig{Cells: 12, Hashes: 3}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	b[len(tableMagic)+10+3] = 0x0f // some 250 million cells
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if readTable(t, b) {
		t.Fatal("a few bytes are accepted for millions of cells")
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

// TestEndlessPeel: forged cells that give and take one pair for ever. Each pair
// stands in one of its cells only, so that taking it out of the others
// makes it come out of them with the other sign, and so on.
func TestEndlessPeel(t *testing.T) {
	table := newTable(t, TableConfig{Cells: 90, Hashes: 3})
	for x := range uint64(30) {
		var room places
		e := table.layout.hash(x, x)
		at := table.places(&e, &room)[x%3]
		table.cells[at.cell].add(Wrapping, at.code, &e, 1)
	}
	p := table.Clone().newPeeling()
	p.scan()
	found := len(p.found.Inserted) + len(p.found.Deleted)
	if found > 90 || p.tests > 2*90+3*found {
		t.Errorf("%d pairs in %d tests", found, p.tests)
	}
	if table.ListEntries().Complete {
		t.Error("half-inserted keys make a complete listing")
	}
	ends := func(ours iter.Seq2[uint64, uint64]) {
		t.Helper()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if r, err := table.Unpoison(ours); err != nil || r.Complete || len(r.Inserted)+len(r.Deleted)+len(r.Mismatched) > 90 {
				t.Errorf("%d, %d and %d entries, complete %v, %v", len(r.Inserted), len(r.Deleted), len(r.Mismatched), r.Complete, err)
			}
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second): // it takes microseconds, and without an end, gigabytes in a minute
			t.Fatal("the listing has no end")
		}
	}
	ends(func(yield func(uint64, uint64) bool) {
		for x := range uint64(1000) {
			if !yield(x, x) {
				return
			}
		}
	})
	// Three keys with two values are put back on trial, once the budget is spent.
	for x := range uint64(3) {
		table.Insert(1000+x, 1)
		table.Delete(1000+x, 2)
	}
	ends(func(yield func(uint64, uint64) bool) {
		for x := range uint64(3) {
			if !yield(1000+x, 2) {
				return
			}
		}
	})
}

// TestTableInOneForm writes a cell that holds one pair with its checks, as if it
// were a sum of several: that is another form of the same table, and refused.
func TestTableInOneForm(t *testing.T) {
	table := newTable(t, TableConfig{Cells: 1, Hashes: 1})
	table.Insert(1, 1)
	b, err := table.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []uint64{0, 1} {
		c := table.Cell(0)
		w := bitWriter{out: append(b[:tableHeader:tableHeader], 2, 2, 1)} // widths, and the one bit of the map
		w.gamma(countCode(1))
		w.write(1, 2)
		w.write(1, 2)
		w.write(0, 1)
		w.write(c.KeyCheck, 64)
		w.write(c.ValueCheck^wrong, 64)
		if accepted := readTable(t, w.bytes()); accepted != (wrong != 0) {
			t.Errorf("checks that differ by %d: accepted is %v", wrong, accepted)
		}
	}
}

// TestPairInAForeignCell: a pair that stands in a cell of another key does
// not count, whatever its checks say.
func TestPairInAForeignCell(t *testing.T) {
	for _, checks := range []Checks{CheckPairs, NoChecks} {
		table := newTable(t, TableConfig{Cells: 60, Hashes: 3, Checks: checks})
		e := table.layout.hash(1, 2)
		foreign := int32(0)
		for all := table.places(&e, new(places)); holds(all, foreign); {
			foreign++
		}
		table.cells[foreign].add(Wrapping, 1, &e, 1)
		if l := table.ListEntries(); l.Complete || len(l.Inserted)+len(l.Deleted) > 0 {
			t.Errorf("checks %d: %+v", checks, l)
		}
	}
}

// FuzzTable reads any bytes as a table.
func FuzzTable(f *testing.F) {
	_, tables := goldenTables(f)
	for _, table := range tables {
		b, err := table.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<12 {
			return
		}
		readTable(t, b)
	})
}

// FuzzTableCells gives tables of each kind any cells, which all are read.
func FuzzTableCells(f *testing.F) {
	f.Add(uint8(0), make([]byte, 6*36))
	f.Add(uint8(1), []byte(strings.Repeat("\x01\x00\x00\x00\x05", 40)))
	f.Fuzz(func(t *testing.T, kind uint8, cells []byte) {
		config := TableConfig{Cells: 6, Hashes: 3, Encoding: Words, Seed: uint64(kind), Sums: Sums(kind & 1), Checks: Checks(kind >> 1 & 3), Quotient: kind&8 != 0}
		if config.Checks == CheckProducts {
			config.Sums = XOR
		}
		b, err := newTable(t, config).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		copy(b[tableHeader:], cells)
		if !readTable(t, b) && !config.Quotient {
			t.Fatal("cells are refused")
		}
	})
}

// TestCounts tries the code of counts at its ends.
func TestCounts(t *testing.T) {
	for code, count := range []int32{1, 0, 2, -1, 3, -2} {
		if got := countCode(count); got != uint64(code)+1 {
			t.Errorf("count %d has code %d", count, got)
		}
	}
	for _, count := range []int32{1<<31 - 1, -1 << 31, 1 - 1<<31, 1<<31 - 2} {
		code := countCode(count)
		if countOf(code) != count || code < 1 || code > 1<<32 {
			t.Errorf("count %d has code %d, which is %d", count, code, countOf(code))
		}
	}
	for width := range 65 {
		for _, x := range []uint64{0, 1, 1<<width - 1, 1 << (width / 2), -(uint64(1) << (width / 2))} {
			if w := widthOf(x); w > 64 || extend(x, w) != x || w > 0 && extend(x, w-1) == x {
				t.Errorf("%x has width %d", x, w)
			}
		}
	}
}
