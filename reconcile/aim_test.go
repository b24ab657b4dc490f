package reconcile

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// What comes out of cells that do not suffice yet is the share of the differences that
// the last aim is corrected by.
func TestComeOut(t *testing.T) {
	const differences, decodes = 1000, 60
	rng := seeded(t, 16)
	for _, cells := range []int{850, 900, 1000} {
		share := 0.0
		for range decodes {
			d := partly(t, rng, differences, cells)
			share += float64(d.Found()) / differences / decodes
		}
		want := comeOut * math.Exp(comeOutSlope*(float64(cells)/differences-1))
		t.Logf("%d cells: %.4f of %d differences came out, want %.4f", cells, share, differences, want)
		if share < 0.75*want || share > 1.3*want {
			t.Errorf("%d cells: %.4f of the differences came out, want %.4f", cells, share, want)
		}
	}
	for _, c := range []struct {
		have, found int
		want        float64 // of an estimate of 1,000
	}{{1000, 102, 1000}, {1000, 0, 1000}, {600, 102, 1000}, {1200, 500, 1000}, {1000, 1000, 860.7}, {900, 1, 1161.8}} {
		if got := corrected(1000, c.have, c.found); math.Abs(got-c.want) > 1 {
			t.Errorf("%d of 1,000 out of %d cells: corrected to %.1f, want %.1f", c.found, c.have, got, c.want)
		}
	}
}

// partly has decoded differences from too few cells.
func partly(t *testing.T, rng *rand.Rand, differences, cells int) *rateless.Decoder {
	t.Helper()
	theirs, ours := missingAll(rng, differences, cells)
	d := rateless.NewDecoder(ours, holdsNothing)
	if err := d.AddCells(theirs); err != nil {
		t.Fatal(err)
	}
	return d
}

// missingAll are the cells of a set of random pairs, under a random key, and the sketch
// of an empty one.
func missingAll(rng *rand.Rand, pairs, cells int) (theirs []rateless.Cell, ours *rateless.Sketch) {
	var key rateless.Key
	for i := range key {
		key[i] = byte(rng.Uint32())
	}
	s := rateless.NewSketch(key, cells)
	for range pairs {
		k := rateless.Index(1 + rng.Uint64N(keyhash.P-1))
		s.Add(rateless.Pair{Index: k, Checksum: rateless.Seal(k, rng.Uint64N(1<<34))})
	}
	return s.Prefix(cells), rateless.NewSketch(key, cells)
}

func holdsNothing(_ []rateless.Index, sums []rateless.Checksum) error {
	clear(sums)
	return nil
}
