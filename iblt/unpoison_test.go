package iblt

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// divergence is two sides of n common keys, of which some are only on one of
// them, and some have different values.
func divergence(r *rand.Rand, n, missing, mismatched int) (theirs, ours map[uint64]uint64) {
	theirs, ours = map[uint64]uint64{}, map[uint64]uint64{}
	for i := range n {
		// Below p and not zero, so that a Pair can hold them too.
		x, y := 1+r.Uint64N(p-1), 1+r.Uint64N(p-1)
		if i >= missing {
			ours[x] = y
		}
		if i < missing || i >= 2*missing {
			theirs[x] = y
		}
		if i >= 2*missing && i < 2*missing+mismatched {
			theirs[x] = y ^ 1
			if y == 1 || y^1 >= p {
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
// listing alone finds none that has two values.
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

// BenchmarkReconcile finds the same differences between the same sets from the
// same number of cells in the two ways: by passes over the local pairs, and
// from the algebra of coded cells, with a map for look-ups. Both begin with
// the cells of theirs − ours.
func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			const d = 300
			r := rand.New(rand.NewPCG(12, 0))
			theirs, ours := divergence(r, n, d/3, d/3)
			const cells = 520
			table := difference(b, TableConfig{Cells: cells, Hashes: 4}, theirs, ours)
			sketches := [2]*Sketch{NewSketch(Key{}, cells), NewSketch(Key{}, cells)}
			for i, side := range []map[uint64]uint64{theirs, ours} {
				for x, y := range side {
					sketches[i].Add(Pair{Index: Index(x), Checksum: Checksum(y)})
				}
			}
			lookup := func(indices []Index, sums []Checksum) error {
				for i, k := range indices {
					sums[i] = Checksum(ours[uint64(k)])
				}
				return nil
			}
			cellsOfTheirs := sketches[0].Prefix(cells)
			var passing, peeling []time.Duration
			passes := 0
			for b.Loop() {
				start := time.Now()
				got, err := table.Unpoison(maps.All(ours))
				middle := time.Now()
				if err != nil || !got.Complete || len(got.Mismatched) != d/3 {
					b.Fatalf("%d mismatches, complete %v, %v", len(got.Mismatched), got.Complete, err)
				}
				decoder := NewDecoder(Key{}, sketches[1], lookup)
				if err := decoder.AddCells(cellsOfTheirs); err != nil || !decoder.Done() || len(decoder.Differences()) != d {
					b.Fatalf("%d differences, %v", len(decoder.Differences()), err)
				}
				passing = append(passing, middle.Sub(start))
				peeling = append(peeling, time.Since(middle))
				passes = got.Passes
			}
			b.ReportMetric(median(passing)/1e3, "µs/unpoison")
			b.ReportMetric(median(peeling)/1e3, "µs/algebra")
			b.ReportMetric(median(passing)/median(peeling), "ratio")
			b.ReportMetric(float64(passes), "passes")
		})
	}
}
