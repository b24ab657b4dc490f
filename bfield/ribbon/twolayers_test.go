package ribbon

import (
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// TestTwoLayers holds a retrieval of two layers to a map, from few keys to several
// shards in its second layer, and to the space that it may take.
func TestTwoLayers(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{0, 1, lastKeys, lastKeys + 1, 20_000, 100_000, 1_000_000, 2_500_000} {
		if n > 100_000 && testing.Short() {
			continue
		}
		hashes, values, twin := make([]uint64, n), make([]uint64, n), make(map[uint64]uint64, n)
		for i := range n {
			hashes[i] = r.Uint64()
			values[i] = hashes[i] * mulLevel >> 56
			twin[hashes[i]] = values[i]
		}
		c := Config{ValueBits: 8, TwoLayers: true, Seed: r.Uint64(), Workers: 2}
		two, err := BuildRetrieval(c, keyed.Numbers(hashes), values)
		if err != nil {
			t.Fatalf("%d keys: %v (seed %d)", n, err, seed)
		}
		data, err := two.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var read Retrieval
		if err := read.UnmarshalBinary(data); err != nil {
			t.Fatalf("%d keys: %v", n, err)
		}
		for h, want := range twin {
			if two.Lookup(keyed.Number(h)) != want || read.Lookup(keyed.Number(h)) != want {
				t.Fatalf("%d keys: %d answers %d and, saved, %d; want %d (seed %d)", n, h, two.Lookup(keyed.Number(h)), read.Lookup(keyed.Number(h)), want, seed)
			}
		}
		s := two.Stats()
		if s.Levels > 2 || n >= 1_000_000 && s.Overhead > 0.009 {
			t.Errorf("%d keys: %d layers, %.2f %% over the values", n, s.Levels, 100*s.Overhead)
		}
		t.Logf("%d keys: %d layers, %.3f %% over the values", n, s.Levels, 100*s.Overhead)
	}
}
