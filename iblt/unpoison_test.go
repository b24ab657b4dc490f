package iblt

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// most is the greatest key and value of a divergence.
const most = 1<<48 - 60

// divergence is two sides of n common keys, of which some are only on one of
// them, and some have different values.
func divergence(r *rand.Rand, n, missing, mismatched int) (theirs, ours map[uint64]uint64) {
	theirs, ours = map[uint64]uint64{}, map[uint64]uint64{}
	for i := range n {
		x, y := 1+r.Uint64N(most), 1+r.Uint64N(most)
		if i >= missing {
			ours[x] = y
		}
		if i < missing || i >= 2*missing {
			theirs[x] = y
		}
		if i >= 2*missing && i < 2*missing+mismatched {
			theirs[x] = y ^ 1
			if y == 1 || y^1 > most {
				theirs[x] = 2
			}
		}
	}
	return theirs, ours
}

// difference is theirs − ours as a table.
func difference(t testing.TB, config TableConfig, theirs, ours map[uint64]uint64) *Table {
	t.Helper()
	table, local := newTable(t, config), newTable(t, config)
	for x, y := range theirs {
		table.Insert(x, y)
	}
	for x, y := range ours {
		local.Insert(x, y)
	}
	if err := table.Subtract(local); err != nil {
		t.Fatal(err)
	}
	return table
}

// explains checks a reconciliation against the two sides.
func explains(r *Reconciliation, theirs, ours map[uint64]uint64) error {
	rest := maps.Clone(theirs)
	fixed := maps.Clone(ours)
	for _, e := range r.Inserted {
		fixed[e.Key] = e.Value
	}
	for _, e := range r.Deleted {
		if y, ok := fixed[e.Key]; !ok || y != e.Value {
			return fmt.Errorf("deleted %+v, ours is %d", e, y)
		}
		delete(fixed, e.Key)
	}
	for _, m := range r.Mismatched {
		if fixed[m.Key] != m.Ours || m.Ours == m.Theirs {
			return fmt.Errorf("mismatched %+v, ours is %d", m, ours[m.Key])
		}
		fixed[m.Key] = m.Theirs
	}
	if !maps.Equal(fixed, rest) {
		return fmt.Errorf("%d, %d and %d entries do not turn one side into the other", len(r.Inserted), len(r.Deleted), len(r.Mismatched))
	}
	return nil
}

// TestUnpoison: the pass over the local pairs finds all differences, where a
// listing alone finds no key that has two values.
func TestUnpoison(t *testing.T) {
	for _, config := range []TableConfig{
		{Cells: 300, Hashes: 4},
		{Cells: 300, Hashes: 4, Sums: XOR},
		{Cells: 300, Hashes: 4, Quotient: true},
		{Cells: 300, Hashes: 4, Placement: Distinct},
		{Cells: 400, Hashes: 4},
	} {
		t.Run(fmt.Sprintf("%+v", config), func(t *testing.T) {
			r := rand.New(rand.NewPCG(10, 0))
			theirs, ours := divergence(r, 3000, 50, 50)
			table := difference(t, config, theirs, ours)
			if config.Cells == 400 {
				if err := table.Lose(1); err != nil {
					t.Fatal(err)
				}
			}
			before, _ := table.MarshalBinary()
			if l := table.ListEntries(); l.Complete {
				t.Fatal("a listing is complete without the pass")
			}
			got, err := table.Unpoison(maps.All(ours))
			if err != nil || !got.Complete {
				t.Fatalf("%d, %d and %d entries, complete %v, %v", len(got.Inserted), len(got.Deleted), len(got.Mismatched), got.Complete, err)
			}
			if err := explains(&got, theirs, ours); err != nil || len(got.Mismatched) != 50 {
				t.Error(err, len(got.Mismatched))
			}
			if after, _ := table.MarshalBinary(); string(after) != string(before) {
				t.Error("the pass has changed the table")
			}
			t.Logf("%d passes", got.Passes)
		})
	}
}

// TestUnpoisonLimits: too many differences are reported as such, after a pass
// that found nothing; without checks of values there is no pass.
func TestUnpoisonLimits(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 0))
	theirs, ours := divergence(r, 1000, 100, 300)
	got, err := difference(t, TableConfig{Cells: 100, Hashes: 4}, theirs, ours).Unpoison(maps.All(ours))
	if err != nil || got.Complete || got.Passes != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, checks := range []Checks{CheckKeys, NoChecks} {
		if _, err := newTable(t, TableConfig{Cells: 100, Hashes: 4, Checks: checks}).Unpoison(maps.All(ours)); !errors.Is(err, ErrNoValueCheck) {
			t.Errorf("checks %d: %v", checks, err)
		}
	}
	// A sequence that never offers the pairs of the table.
	var none iter.Seq2[uint64, uint64] = func(func(uint64, uint64) bool) {}
	if got, err := difference(t, TableConfig{Cells: 100, Hashes: 4}, map[uint64]uint64{1: 2}, map[uint64]uint64{1: 3}).Unpoison(none); err != nil || got.Complete {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestUnpoisonPassesAreBounded: a peer that knows the local pairs and their order
// can have each pass find one mismatch only. A chain of keys, of which each
// shares a cell with the one before and one with the next, comes apart from its
// first key on, because something forged is in the last one's cell; the local
// pairs come in the opposite order.
func TestUnpoisonPassesAreBounded(t *testing.T) {
	const half = 150
	table := newTable(t, TableConfig{Cells: 2 * half, Hashes: 2, Seed: 9})
	r := rand.New(rand.NewPCG(22, 0))
	by := map[[2]int]uint64{}
	for range 12 * half * half {
		x := r.Uint64()
		at := table.layout.Places(nil, x)
		by[[2]int{at[0], at[1]}] = x
	}
	var chain []uint64
	for i := range half {
		chain = append(chain, by[[2]int{i, half + i}])
		if i+1 < half {
			chain = append(chain, by[[2]int{i + 1, half + i}])
		}
	}
	for _, x := range chain {
		if x == 0 {
			t.Fatal("no key was drawn for a link of the chain")
		}
		table.Insert(x, 1)
		table.Delete(x, 2)
	}
	const last = 2*half - 1
	c := table.Cell(last)
	c.ValueCheck++
	table.SetCell(last, c)
	slices.Reverse(chain)
	got, err := table.Unpoison(func(yield func(x, y uint64) bool) {
		for _, x := range chain {
			if !yield(x, 2) {
				return
			}
		}
	})
	if err != nil || got.Complete || got.Passes != maxPasses || len(got.Mismatched) != maxPasses {
		t.Errorf("%d keys: %d passes found %d, complete %v, %v", len(chain), got.Passes, len(got.Mismatched), got.Complete, err)
	}
}

// solve is Solve with the local pairs in a map.
func solve(table *Table, ours map[uint64]uint64) (Reconciliation, error) {
	return table.Solve(func(x uint64) (uint64, bool) {
		y, ok := ours[x]
		return y, ok
	})
}

// productTables are tables in which both ways of unpoisoning work.
var productTables = []TableConfig{
	{Cells: 300, Hashes: 4, Sums: XOR, Checks: CheckProducts},
	{Cells: 300, Hashes: 4, Sums: XOR, Checks: CheckProducts, CheckBits: 40},
	{Cells: 300, Hashes: 4, Sums: XOR, Checks: CheckProducts, Quotient: true},
	{Cells: 300, Sums: XOR, Checks: CheckProducts, Placement: Distinct, Degrees: Irregular()},
}

// TestSolve: the division finds what the pass over the local pairs finds, from
// the same table, of any 64-bit keys and values, zero among them.
func TestSolve(t *testing.T) {
	for _, config := range productTables {
		t.Run(fmt.Sprintf("%+v", config), func(t *testing.T) {
			for trial := range uint64(20) {
				r := rand.New(rand.NewPCG(19, trial))
				config.Seed = trial
				theirs, ours := divergence(r, 3000, 40, 40)
				theirs[0], ours[0] = r.Uint64(), 0
				theirs[1<<64-1], ours[1<<64-1] = 1<<64-1, 0
				theirs[r.Uint64()] = 0
				table := difference(t, config, theirs, ours)
				before, _ := table.MarshalBinary()
				got, err := solve(table, ours)
				if err != nil || !got.Complete || got.Passes != 0 || len(got.Mismatched) != 42 {
					t.Fatalf("trial %d: %d, %d and %d entries, complete %v, %v", trial, len(got.Inserted), len(got.Deleted), len(got.Mismatched), got.Complete, err)
				}
				if err := explains(&got, theirs, ours); err != nil {
					t.Fatalf("trial %d: %v", trial, err)
				}
				passed, err := table.Unpoison(maps.All(ours))
				if err != nil || !passed.Complete || len(passed.Mismatched) != 42 {
					t.Fatalf("trial %d: a pass finds %d, %v", trial, len(passed.Mismatched), err)
				}
				if after, _ := table.MarshalBinary(); string(after) != string(before) {
					t.Fatal("solving has changed the table")
				}
			}
		})
	}
}

// TestSolveLimits: too many differences, local pairs that are not known, lost
// subtables, and tables without products.
func TestSolveLimits(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 0))
	config := productTables[0]
	theirs, ours := divergence(r, 1000, 100, 300)
	if got, err := solve(difference(t, config, theirs, ours), ours); err != nil || got.Complete {
		t.Errorf("500 differences in %d cells: complete %v, %v", config.Cells, got.Complete, err)
	}
	theirs, ours = divergence(r, 1000, 30, 60)
	table := difference(t, config, theirs, ours)
	if got, err := solve(table, nil); err != nil || got.Complete || len(got.Mismatched) != 0 {
		t.Errorf("nothing known: %+v, %v", got, err)
	}
	other := map[uint64]uint64{}
	for x, y := range ours {
		other[x] = y ^ 1<<40
	}
	if got, err := solve(table, other); err != nil || got.Complete || len(got.Mismatched) != 0 {
		t.Errorf("other values than ours: %d mismatches, complete %v, %v", len(got.Mismatched), got.Complete, err)
	}
	if err := table.Lose(2); err != nil {
		t.Fatal(err)
	}
	if got, err := solve(table, ours); err != nil || !got.Complete || explains(&got, theirs, ours) != nil {
		t.Errorf("a lost subtable: %d mismatches, complete %v, %v", len(got.Mismatched), got.Complete, err)
	}
	for _, config := range []TableConfig{{Cells: 100, Hashes: 4}, {Cells: 100, Hashes: 4, Sums: XOR}} {
		if _, err := solve(newTable(t, config), ours); !errors.Is(err, ErrNoProducts) {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

// TestSolveForged: a key with two values that stands in a cell of another key,
// or beside something else, does not count, whatever the check says.
func TestSolveForged(t *testing.T) {
	table := newTable(t, TableConfig{Cells: 60, Hashes: 3, Sums: XOR, Checks: CheckProducts})
	ours, theirs := table.layout.hash(1, 2), table.layout.hash(1, 3)
	var c TableCell
	c.add(XOR, 1, &theirs, 1)
	c.add(XOR, 1, &ours, -1)
	own := table.layout.Places(nil, 1)
	foreign := 0
	for slices.Contains(own, foreign) {
		foreign++
	}
	beside := c
	beside.KeySum = 4
	for at, c := range map[int]TableCell{foreign: c, own[0]: beside} {
		table.Reset()
		table.SetCell(at, c)
		if r, err := solve(table, map[uint64]uint64{1: 2}); err != nil || r.Complete || len(r.Mismatched) != 0 {
			t.Errorf("cell %d: %+v, %v", at, r, err)
		}
	}
}

func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2])
}

// BenchmarkReconcile finds the same differences from the same table in the two
// ways: by passes over the local pairs, and by division, with a map for
// look-ups.
func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			const d = 300
			theirs, ours := divergence(rand.New(rand.NewPCG(12, 0)), n, d/3, d/3)
			table := difference(b, TableConfig{Cells: 520, Hashes: 4, Sums: XOR, Checks: CheckProducts}, theirs, ours)
			pairs := make([][2]uint64, 0, len(ours)) // a slice is passed over faster than a map
			for x, y := range ours {
				pairs = append(pairs, [2]uint64{x, y})
			}
			all := func(yield func(x, y uint64) bool) {
				for _, pair := range pairs {
					if !yield(pair[0], pair[1]) {
						return
					}
				}
			}
			var passing, dividing []time.Duration
			passes := 0
			for b.Loop() {
				start := time.Now()
				passed, err := table.Unpoison(all)
				middle := time.Now()
				solved, err2 := solve(table, ours)
				dividing = append(dividing, time.Since(middle))
				passing = append(passing, middle.Sub(start))
				if err != nil || err2 != nil || !passed.Complete || !solved.Complete || len(passed.Mismatched) != d/3 || len(solved.Mismatched) != d/3 {
					b.Fatalf("%d and %d mismatches, %v, %v", len(passed.Mismatched), len(solved.Mismatched), err, err2)
				}
				passes = passed.Passes
			}
			b.ReportMetric(median(passing)/1e3, "µs/unpoison")
			b.ReportMetric(median(dividing)/1e3, "µs/solve")
			b.ReportMetric(median(passing)/median(dividing), "ratio")
			// A run of many milliseconds is interrupted on a busy machine, one of 0.2
			// is not: the fastest of each compare better there.
			b.ReportMetric(float64(slices.Min(passing))/float64(slices.Min(dividing)), "ratio-of-fastest")
			b.ReportMetric(float64(passes), "passes")
			b.ReportMetric(0, "ns/op")
		})
	}
}
