package rateless

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDrawing does what the drawing in the package's documentation shows, with
// indices that belong to the cells that it gives them.
func TestDrawing(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 0))
	theirs, ours := NewSketch(Key{}, MinCells), NewSketch(Key{}, MinCells)
	in := func(cells ...uint64) Index {
		for {
			if k := randomIndex(r); slices.Equal(cellsOf(&theirs.words, k, 4), cells) {
				return k
			}
		}
	}
	pair := func(k Index, v Checksum) Pair { return Pair{Index: k, Checksum: v} }
	k, l, m := in(0, 1, 3), in(0, 2), in(0, 3)
	a, b, v, x := Seal(k, 5), Seal(k, 6), Seal(l, 7), Seal(m, 8)
	for _, p := range []Pair{pair(k, a), pair(l, v), pair(m, x)} {
		theirs.Add(p)
	}
	for _, p := range []Pair{pair(k, b), pair(m, x)} {
		ours.Add(p)
	}
	look := func(when string, want [4]string) {
		t.Helper()
		sums := ours.Prefix(4)
		for i, c := range theirs.Prefix(4) {
			c.sub(&sums[i])
			got := "neither"
			alone := func(p Pair) Cell { return cellOf(p) }
			poisoned, old := alone(pair(k, a)), alone(pair(k, b))
			poisoned.sub(&old)
			switch {
			case c.IsZero():
				got = "zero"
			case c == alone(pair(l, v)) && c.Count == 1:
				got = "pure"
			case c == poisoned && c.Count == 0:
				got = "poisoned"
			}
			if got != want[i] {
				t.Errorf("%s: cell %d is %s, want %s", when, i, got, want[i])
			}
		}
	}
	look("theirs − ours", [4]string{"neither", "poisoned", "pure", "poisoned"})
	d := NewDecoder(ours.Clone(), func(indices []Index, sums []Checksum) error {
		held := map[Index]Checksum{k: b, m: x}
		for i, index := range indices {
			sums[i] = held[index]
		}
		return nil
	})
	if err := d.AddCells(theirs.Prefix(MinCells)); err != nil {
		t.Fatal(err)
	}
	theirs.Remove(pair(l, v))
	look("l taken out", [4]string{"poisoned", "poisoned", "zero", "poisoned"})
	theirs.Replace(pair(k, a), pair(k, b))
	look("k taken out", [4]string{"zero", "zero", "zero", "zero"})
	want := map[Difference]bool{{MissingHere, l, v, 0}: true, {Mismatched, k, a, b}: true}
	if found := d.Differences(); !d.Done() || len(found) != 2 || !want[found[0]] || !want[found[1]] {
		t.Errorf("found %+v, done %v", found, d.Done())
	}
}
