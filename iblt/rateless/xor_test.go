package rateless

import (
	"math/rand/v2"
	"testing"
)

// xorCell is the cell that one would write first: count, and keys and
// checksums folded by exclusive or.
type xorCell struct {
	count  int
	keys   Index
	values Checksum
}

// xorCells are the cells of the difference, with exclusive or for + and −.
func xorCells(w *words, differences map[Index]Difference, m int) []xorCell {
	cells := make([]xorCell, m)
	add := func(k Index, v Checksum, count int) {
		if v == 0 {
			return
		}
		for _, at := range cellsOf(w, k, uint64(m)) {
			cells[at].count += count
			cells[at].keys ^= k
			cells[at].values ^= v
		}
	}
	for k, d := range differences {
		add(k, d.Theirs, 1)
		add(k, d.Ours, -1)
	}
	return cells
}

// TestXORTwinLosesUpdates: with exclusive or the key of a changed record
// cancels, and its update is lost; the coded cells find it.
func TestXORTwinLosesUpdates(t *testing.T) {
	const seed, d, m = 12, 100, 400
	for _, kind := range []Kind{MissingHere, Mismatched} {
		missing, mismatched := d, 0
		if kind == Mismatched {
			missing, mismatched = 0, d
		}
		s := diverge(rand.New(rand.NewPCG(seed, 0)), Key{}, m, 0, missing, 0, mismatched)
		w := expand(Key{})
		candidates := 0
		for _, c := range xorCells(&w, s.want, m) {
			if (c.count == 1 || c.count == -1 || c.count == 0) && c.keys != 0 {
				candidates++
			}
		}
		// With each update the key is gone from all cells: not one can be
		// solved, and by count and keys the sets look equal.
		if (candidates == 0) != (kind == Mismatched) {
			t.Errorf("%s: %d cells with a key in them", kind, candidates)
		}
		decoder := NewDecoder(s.ours, s.lookup)
		if err := decoder.AddCells(s.theirs.Prefix(m)); err != nil {
			t.Fatal(err)
		}
		if !decoder.Done() || len(decoder.Differences()) != d {
			t.Errorf("%s: done %v with %d of %d", kind, decoder.Done(), len(decoder.Differences()), d)
		}
	}
}
