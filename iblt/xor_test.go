package iblt

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

// TestXORTwinLosesUpdates: with exclusive or the key of a changed record
// cancels, and its update is lost; the coded cells find it.
func TestXORTwinLosesUpdates(t *testing.T) {
	const seed, d, m = 12, 100, 400
	s := diverge(rand.New(rand.NewPCG(seed, 0)), Key{}, m, 0, 0, 0, d)
	w := expand(Key{})
	cells := make([]xorCell, m)
	for k, want := range s.want {
		for _, at := range cellsOf(&w, k, m) {
			cells[at].keys ^= k ^ k // theirs and ours
			cells[at].values ^= want.Theirs ^ want.Ours
		}
	}
	for i, c := range cells {
		if c.count != 0 || c.keys != 0 {
			t.Fatalf("cell %d: %+v", i, c) // nothing is pure: all d updates are lost
		}
	}
	decoder := NewDecoder(Key{}, s.ours, s.lookup)
	if err := decoder.AddCells(s.theirs.Prefix(m)); err != nil {
		t.Fatal(err)
	}
	if !decoder.Done() || len(decoder.Differences()) != d {
		t.Fatalf("done %v with %d updates of %d", decoder.Done(), len(decoder.Differences()), d)
	}
}
