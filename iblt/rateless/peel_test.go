package rateless

import (
	"math/rand/v2"
	"testing"
)

// TestQueuedOnce: each cell is in the queue once, however many pairs that were taken out
// of it meanwhile left it with a few: it is tested once for all of them.
func TestQueuedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(47, 0))
	s := diverge(r, Key{47}, 2048, 100, 200, 200, 200)
	var d *Decoder
	longest := 0
	d = NewDecoder(s.ours, func(indices []Index, sums []Checksum) error {
		in := map[int32]bool{}
		for _, at := range d.round.queue { // what this round tests
			if in[at] {
				t.Fatalf("cell %d is twice in a queue of %d", at, len(d.round.queue))
			}
			in[at] = true
		}
		longest = max(longest, len(in))
		return s.lookup(indices, sums)
	})
	cells, err := s.theirs.Cells(0, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AddCells(cells); err != nil {
		t.Fatal(err)
	}
	if !d.Done() || longest < 50 {
		t.Fatalf("done: %v; the longest queue had %d cells", d.Done(), longest)
	}
}
