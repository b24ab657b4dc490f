package iblt

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func newTable(t testing.TB, config TableConfig) *Table {
	t.Helper()
	table, err := NewTable(config)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestDuplicatesThatWrapAround lists up to 31 copies of pairs whose sums go
// beyond 2^64, inserted or deleted: the case that the paper gives up.
func TestDuplicatesThatWrapAround(t *testing.T) {
	for _, quotient := range []bool{false, true} {
		for copies := 1; copies < 32; copies++ {
			table := newTable(t, TableConfig{Cells: 40, Hashes: 4, Seed: uint64(copies), Quotient: quotient})
			x, y := uint64(math.MaxUint64-5), uint64(1<<63+1)
			for range copies {
				table.Insert(x, y)
				table.Delete(y, x)
			}
			l := table.ListEntries()
			if !l.Complete || !slices.Equal(l.Inserted, []Entry{{x, y, copies}}) || !slices.Equal(l.Deleted, []Entry{{y, x, copies}}) {
				t.Fatalf("%d copies: %+v", copies, l)
			}
			if got, answer := table.Get(x); answer != Found || got != y {
				t.Fatalf("%d copies: %d, %v", copies, got, answer)
			}
		}
	}
	// Twice a key and twice the key 2^63 beyond it have the same sum.
	single := newTable(t, TableConfig{Cells: 1, Hashes: 1})
	single.Insert(5, 6)
	single.Insert(5, 6)
	if y, answer := single.Get(5 + 1<<63); answer != Unknown {
		t.Errorf("the key 2^63 beyond is %v with %d", answer, y)
	}
	// 96 = 3·2^5 copies: only what has not wrapped around is divided.
	table := newTable(t, TableConfig{Cells: 40, Hashes: 4})
	for range 96 {
		table.Insert(7, 8)
	}
	if l := table.ListEntries(); !l.Complete || l.Inserted[0] != (Entry{7, 8, 96}) {
		t.Errorf("96 copies: %+v", l)
	}
}

// TestMostCopies: the largest numbers of copies that a count can hold, in both
// directions.
func TestMostCopies(t *testing.T) {
	for _, times := range []int32{math.MaxInt32, math.MinInt32} {
		table := newTable(t, TableConfig{Cells: 40, Hashes: 4})
		for _, at := range table.layout.Places(nil, 3) {
			var c TableCell
			table.layout.Apply(&c, at, 3, 5, times)
			table.SetCell(at, c)
		}
		l := table.ListEntries()
		listed := append(l.Inserted, l.Deleted...)
		if want := max(int(times), -int(times)); !l.Complete || !slices.Equal(listed, []Entry{{3, 5, want}}) || (times < 0) != (len(l.Deleted) == 1) {
			t.Errorf("%d copies: %+v", times, l)
		}
	}
}

// TestKeysWithSeveralValues: they are not listed, not found and not absent;
// all others are listed; and when a value goes, the key is whole again.
func TestKeysWithSeveralValues(t *testing.T) {
	table := newTable(t, TableConfig{Cells: 800, Hashes: 5})
	r := rand.New(rand.NewPCG(4, 0))
	for range 100 {
		table.Insert(r.Uint64(), r.Uint64())
	}
	table.Insert(1, 10)
	table.Insert(1, 12) // with 10 makes an average of 11
	table.Insert(2, 20)
	table.Delete(2, 21) // the key cancels
	l := table.ListEntries()
	if l.Complete || len(l.Inserted) != 100 || len(l.Deleted) != 0 {
		t.Fatalf("%d and %d entries, complete %v", len(l.Inserted), len(l.Deleted), l.Complete)
	}
	for x := range uint64(2) {
		if y, answer := table.Get(x + 1); answer != Unknown {
			t.Errorf("key %d: %d, %v", x+1, y, answer)
		}
	}
	table.Delete(1, 12)
	table.Insert(2, 21)
	if l := table.ListEntries(); !l.Complete || len(l.Inserted) != 102 {
		t.Errorf("repaired: %d entries, complete %v", len(l.Inserted), l.Complete)
	}
}

// TestExchangedValues: with a check of values alone, as in the paper, a cell of
// two keys that exchanged their values would look empty.
func TestExchangedValues(t *testing.T) {
	table := newTable(t, TableConfig{Cells: 1, Hashes: 1})
	table.Insert(1, 10)
	table.Insert(2, 20)
	table.Delete(1, 20)
	table.Delete(2, 10)
	if _, answer := table.Get(1); answer != Unknown {
		t.Errorf("key 1 is %v", answer)
	}
	if table.ListEntries().Complete {
		t.Error("the listing is complete")
	}
}

// TestLostSubtable writes a table without one of its parts, which saves the
// bytes, and lists all the same.
func TestLostSubtable(t *testing.T) {
	for _, encoding := range []Encoding{Packed, Words} {
		table := newTable(t, TableConfig{Cells: 1000, Hashes: 5, Encoding: encoding})
		r := rand.New(rand.NewPCG(6, 0))
		want := tableTwin{}
		for range 400 {
			x, y := r.Uint64(), r.Uint64()
			table.Insert(x, y)
			want.add(x, y, 1)
		}
		whole, err := table.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Lose(2); err != nil {
			t.Fatal(err)
		}
		part, err := table.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if ratio := float64(len(part)) / float64(len(whole)); ratio < 0.78 || ratio > 0.82 {
			t.Errorf("4 of 5 subtables take %d of %d bytes", len(part), len(whole))
		}
		var read Table
		if err := read.UnmarshalBinary(part); err != nil {
			t.Fatal(err)
		}
		read.Insert(1, 1)
		want.add(1, 1, 1)
		if l := read.ListEntries(); !l.Complete || !sameTwins(twinOf(t, l), want) {
			t.Errorf("%d of 401 listed, complete %v", len(l.Inserted), l.Complete)
		}
		read.SetCell(400, TableCell{Count: 1})
		if read.Cell(400) != (TableCell{}) {
			t.Error("a lost cell was set")
		}
		other := newTable(t, table.Config())
		if err := other.Lose(0); err != nil {
			t.Fatal(err)
		}
		if err := other.Subtract(&read); err != nil || !slices.Equal(other.Lost(), []int{0, 2}) {
			t.Errorf("lost after a subtraction: %v, %v", other.Lost(), err)
		}
		other.Reset()
		if len(other.Lost()) != 0 || !other.drained() {
			t.Error("a reset table is not as new")
		}
		for _, i := range []int{-1, 5} {
			if err := read.Lose(i); !errors.Is(err, ErrTableConfig) {
				t.Errorf("lose %d: %v", i, err)
			}
		}
		for i := range 4 {
			if err := read.Lose(i); err != nil {
				t.Fatal(err)
			}
		}
		if err := read.Lose(4); !errors.Is(err, ErrTableConfig) {
			t.Errorf("lose the last: %v", err)
		}
	}
}

// TestShortChecks counts the wrong pairs that pass checks of 8 bits, and holds
// the rate against 2^−8 for each check.
func TestShortChecks(t *testing.T) {
	const seed, trials = 8, 400_000
	for _, c := range []struct {
		checks Checks
		rate   float64
	}{{CheckKeys, 1.0 / 256}, {CheckPairs, 1.0 / 65536}} {
		l, err := NewLayout(TableConfig{Cells: 10, Hashes: 1, Checks: c.checks, CheckBits: 8, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 0))
		wrong := 0
		for range trials {
			// Two inserted and one deleted: the count is 1.
			var cell TableCell
			for times := range 3 {
				e := l.hash(r.Uint64(), r.Uint64())
				cell.add(Wrapping, e.x, &e, int64(1-times%2*2))
			}
			if _, ok := l.only(&cell, 0); ok {
				wrong++
			}
		}
		if want := trials * c.rate; math.Abs(float64(wrong)-want) > 6*math.Sqrt(want) {
			t.Errorf("checks %d: %d of %d sums pass, not about %.1f", c.checks, wrong, trials, want)
		}
	}
}

// TestLookUpRates holds GET against sections 2.3 and 3: keys that are there,
// and keys that are not, with and without checks.
func TestLookUpRates(t *testing.T) {
	const seed, keys, cells, k, trials = 9, 1000, 4000, 4, 10
	load := float64(k*keys) / cells
	for _, c := range []struct {
		checks Checks
		absent float64
	}{
		{CheckPairs, 1 - math.Pow(1-math.Exp(-load), k)},
		{NoChecks, 1 - math.Pow(1-math.Exp(-load)*(1+load), k)},
	} {
		r := rand.New(rand.NewPCG(seed, 0))
		found, absent := 0, 0
		for trial := range trials {
			table := newTable(t, TableConfig{Cells: cells, Hashes: k, Checks: c.checks, Seed: uint64(trial)})
			there := make([]uint64, keys)
			for i := range there {
				there[i] = r.Uint64()
				table.Insert(there[i], 1)
			}
			for _, x := range there {
				if _, answer := table.Get(x); answer == Found {
					found++
				}
				if _, answer := table.Get(r.Uint64()); answer == Absent {
					absent++
				}
			}
		}
		const n = keys * trials
		for _, rate := range []struct {
			what string
			got  int
			want float64
		}{{"found", found, 1 - math.Pow(1-math.Exp(-load), k)}, {"absent", absent, c.absent}} {
			// Keys of one table are not independent: 6 standard errors and a bit.
			if off := math.Abs(float64(rate.got)/n - rate.want); off > 8*math.Sqrt(rate.want*(1-rate.want)/n) {
				t.Errorf("checks %d: %.4f %s, not %.4f", c.checks, float64(rate.got)/n, rate.what, rate.want)
			}
		}
	}
	for answer, want := range map[Answer]string{Unknown: "unknown", Absent: "absent", Found: "found", 9: "Answer(9)"} {
		if answer.String() != want {
			t.Errorf("%d is called %q", uint8(answer), answer)
		}
	}
}
