package iblt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// tableTwin is the stupid twin of a Table: how often each pair was inserted
// less how often it was deleted.
type tableTwin map[[2]uint64]int

func (tw tableTwin) add(x, y uint64, times int) {
	tw[[2]uint64{x, y}] += times
	if tw[[2]uint64{x, y}] == 0 {
		delete(tw, [2]uint64{x, y})
	}
}

// values returns how many different pairs each key has.
func (tw tableTwin) values() map[uint64]int {
	n := map[uint64]int{}
	for pair := range tw {
		n[pair[0]]++
	}
	return n
}

// peel lists by definition: as long as a cell holds copies of one pair only,
// that pair is taken out of all cells. Pairs that come out, and whether that is
// all.
func (tw tableTwin) peel(t *Table) (tableTwin, bool) {
	cells := make([]map[[2]uint64]bool, len(t.cells))
	for i := range cells {
		cells[i] = map[[2]uint64]bool{}
	}
	of := func(pair [2]uint64) []place {
		e := t.layout.hash(pair[0], pair[1])
		return t.places(&e, new(places))
	}
	for pair := range tw {
		for _, at := range of(pair) {
			cells[at.cell][pair] = true
		}
	}
	found := tableTwin{}
	for progress := true; progress; {
		progress = false
		for _, cell := range cells {
			if len(cell) != 1 {
				continue
			}
			for pair := range cell {
				found[pair] = tw[pair]
				for _, at := range of(pair) {
					delete(cells[at.cell], pair)
				}
			}
			progress = true
		}
	}
	return found, len(found) == len(tw)
}

// twinOf is a Listing as a twin.
func twinOf(t testing.TB, l Listing) tableTwin {
	t.Helper()
	tw := tableTwin{}
	for sign, entries := range map[int][]Entry{1: l.Inserted, -1: l.Deleted} {
		for _, e := range entries {
			pair := [2]uint64{e.Key, e.Value}
			if _, twice := tw[pair]; twice || e.Count < 1 {
				t.Fatalf("%+v is listed twice, or with a count below 1", e)
			}
			tw[pair] = sign * e.Count
		}
	}
	return tw
}

func sameTwins(a, b tableTwin) bool {
	if len(a) != len(b) {
		return false
	}
	for pair, n := range a {
		if b[pair] != n {
			return false
		}
	}
	return true
}

// anyConfig draws a configuration of all kinds.
func anyConfig(t *rapid.T) TableConfig {
	c := TableConfig{
		Seed:      rapid.Uint64().Draw(t, "seed"),
		Placement: Placement(rapid.IntRange(0, 1).Draw(t, "placement")),
		Sums:      Sums(rapid.IntRange(0, 1).Draw(t, "sums")),
		Checks:    Checks(rapid.IntRange(0, 3).Draw(t, "checks")),
		CheckBits: rapid.SampledFrom([]int{0, 40, 48, 56, 64}).Draw(t, "check bits"),
		Encoding:  Encoding(rapid.IntRange(0, 1).Draw(t, "encoding")),
	}
	if c.Checks == CheckProducts {
		c.Sums = XOR
	}
	if c.Placement == Distinct && rapid.Bool().Draw(t, "irregular") {
		c.Degrees = []Degree{{Hashes: rapid.IntRange(1, 4).Draw(t, "few"), Share: 3}, {Hashes: rapid.IntRange(3, 9).Draw(t, "many"), Share: 1}}
	} else {
		c.Hashes = rapid.IntRange(1, 7).Draw(t, "hashes")
	}
	c.Quotient = c.Placement == Subtables && rapid.Bool().Draw(t, "quotient")
	c.Cells = rapid.IntRange(c.mostHashes(), 60).Draw(t, "cells")
	return c
}

// TestTableAgainstTwin puts arbitrary pairs into arbitrary tables, as far as
// each kind of table allows: what comes out is what the definition says, Get
// never lies, and the bytes come back.
func TestTableAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := anyConfig(t)
		table, err := NewTable(config)
		if err != nil {
			t.Fatal(err)
		}
		if k := config.Hashes; config.Placement == Subtables && k > 1 {
			for range rapid.IntRange(0, 2).Draw(t, "losses") {
				if len(table.Lost()) < k-1 {
					if err := table.Lose(rapid.IntRange(0, k-1).Draw(t, "lost")); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		tw := tableTwin{}
		keys := []uint64{0, 1, 1<<64 - 1, rapid.Uint64().Draw(t, "x")}
		for i := range uint64(rapid.IntRange(0, 30).Draw(t, "pairs")) {
			x, y := rapid.SampledFrom(keys).Draw(t, "old key"), rapid.Uint64().Draw(t, "y")
			times := 1
			switch {
			case config.Checks == NoChecks:
				x = keys[3] + 1 + i // distinct keys
			case config.Sums == XOR:
				x, times = keys[3]+1+i, rapid.SampledFrom([]int{1, -1}).Draw(t, "sign")
			case config.Checks == CheckKeys:
				x, y = keys[3]+1+i, y>>6 // one value a key, that does not wrap around
				times = rapid.IntRange(-9, 9).Draw(t, "times")
			default:
				x = rapid.SampledFrom([]uint64{x, keys[3] + 1 + i}).Draw(t, "key")
				times = rapid.IntRange(-9, 9).Draw(t, "times")
			}
			for range times {
				table.Insert(x, y)
			}
			for range -times {
				table.Delete(x, y)
			}
			tw.add(x, y, times)
		}
		before, err := table.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		got := table.ListEntries()
		want, complete := tw.peel(table)
		// Several pairs of a key may be told apart by luck alone (their sums are
		// a pair's), so that no more may come out than the definition says.
		if listed := twinOf(reporter(t), got); !sameTwins(listed, want) || got.Complete != complete {
			t.Fatalf("%+v: listed %v, complete %v; want %v, %v", config, listed, got.Complete, want, complete)
		}
		after, _ := table.MarshalBinary()
		if string(after) != string(before) {
			t.Fatal("a listing has changed the table")
		}
		checkGet(t, table, tw, append(keys, keys[3]+1, keys[3]+2, keys[3]+3))
		var read Table
		if err := read.UnmarshalBinary(before); err != nil {
			t.Fatal(err)
		}
		again, _ := read.MarshalBinary()
		if string(again) != string(before) || !slices.Equal(read.Lost(), table.Lost()) {
			t.Fatal("a table is not what was written")
		}
		if err := read.Subtract(table); err != nil || !read.drained() {
			t.Fatalf("a table less itself is not empty: %v", err)
		}
	})
}

// reporter hands a rapid.T to what wants a testing.TB.
func reporter(t *rapid.T) testing.TB { return fatal{nil, t} }

type fatal struct {
	testing.TB
	t *rapid.T
}

func (f fatal) Helper()                           {}
func (f fatal) Fatalf(format string, args ...any) { f.t.Fatalf(format, args...) }

// checkGet looks keys up: what is found is there, what is absent is not.
func checkGet(t *rapid.T, table *Table, tw tableTwin, keys []uint64) {
	values := tw.values()
	for _, x := range keys {
		y, answer := table.Get(x)
		switch answer {
		case Found:
			if tw[[2]uint64{x, y}] == 0 || values[x] != 1 {
				t.Fatalf("key %d is found with %d; it has %d values", x, y, values[x])
			}
		case Absent:
			if values[x] != 0 {
				t.Fatalf("key %d is absent; it has %d values", x, values[x])
			}
		}
	}
}

// TestSmallTablesInFull tries all subsets of a few keys in tables of all small
// sizes.
func TestSmallTablesInFull(t *testing.T) {
	for cells := 3; cells <= 9; cells++ {
		for _, placement := range []Placement{Subtables, Distinct} {
			config := TableConfig{Cells: cells, Hashes: 3, Placement: placement}
			for set := range 1 << 7 {
				table, err := NewTable(config)
				if err != nil {
					t.Fatal(err)
				}
				tw := tableTwin{}
				for x := range uint64(7) {
					if set>>x&1 != 0 {
						table.Insert(x, x*x)
						tw.add(x, x*x, 1)
					}
				}
				got := table.ListEntries()
				want, complete := tw.peel(table)
				if !sameTwins(twinOf(t, got), want) || got.Complete != complete {
					t.Fatalf("%+v, set %b: %+v, want %v, %v", config, set, got, want, complete)
				}
			}
		}
	}
}

// TestBeyondThresholdAndBack: the table of the paper is overfilled tenfold, and
// lists all when the surplus has gone.
func TestBeyondThresholdAndBack(t *testing.T) {
	const seed, keys, surplus = 5, 1000, 20_000
	for _, config := range []TableConfig{
		{Cells: 1600, Hashes: 5},
		{Cells: 1600, Hashes: 5, Sums: XOR},
		{Cells: 1600, Hashes: 5, Quotient: true},
		{Cells: 1600, Hashes: 5, Checks: NoChecks},
		{Cells: 1600, Placement: Distinct, Degrees: Irregular()},
	} {
		t.Run(fmt.Sprintf("%+v", config), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			table, err := NewTable(config)
			if err != nil {
				t.Fatal(err)
			}
			pairs := make([][2]uint64, keys+surplus)
			for i := range pairs {
				pairs[i] = [2]uint64{r.Uint64(), r.Uint64()}
				table.Insert(pairs[i][0], pairs[i][1])
			}
			if l := table.ListEntries(); l.Complete {
				t.Error("a listing of too many pairs is complete")
			}
			for _, pair := range pairs[keys:] {
				table.Delete(pair[0], pair[1])
			}
			l := table.ListEntries()
			if !l.Complete || len(l.Inserted) != keys || len(l.Deleted) != 0 {
				t.Fatalf("%d pairs, complete %v", len(l.Inserted), l.Complete)
			}
			listed := twinOf(t, l)
			for _, pair := range pairs[:keys] {
				if listed[pair] != 1 {
					t.Fatalf("%v is not listed", pair)
				}
			}
		})
	}
}
