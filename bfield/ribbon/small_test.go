package ribbon

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// smallSizes are all sizes up to some buckets, and both sides of the step from
// one level to two.
func smallSizes() []int {
	sizes := []int{255, 256, 257, 383, 384, 385, 511, 512, 513, lastKeys - 1, lastKeys, lastKeys + 1}
	for n := range 201 {
		sizes = append(sizes, n)
	}
	return sizes
}

// Every key of every small set answers, whatever the kind and width.
func TestEverySmallSize(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range smallSizes() {
		hashes, wide := make([]uint64, n), make([]uint64, n)
		for i := range n {
			hashes[i], wide[i] = r.Uint64(), r.Uint64()
		}
		for _, width := range []int{1, 2, 7, 8, 9, 33, 64} {
			values := make([]uint64, n)
			for i := range n {
				values[i] = wide[i] >> (64 - width)
			}
			c := Config{ValueBits: width, FingerprintBits: 1 + r.IntN(maxFingerprint), Seed: r.Uint64(), Workers: 1}
			re, err := BuildRetrieval(c, keyed.Numbers(hashes), values)
			if err != nil {
				t.Fatal(err)
			}
			m, err := BuildMap(c, keyed.Numbers(hashes), values)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := m.Lookup(keyed.Number(r.Uint64())); n == 0 && (ok || m.Stats() != (Stats{})) {
				t.Fatalf("the empty map has a key, or %+v", m.Stats())
			}
			for i, h := range hashes {
				if got := re.Lookup(keyed.Number(h)); got != values[i] {
					t.Fatalf("retrieval of %d keys, %+v: key %d answers %d, want %d (seed %d)", n, c, i, got, values[i], seed)
				}
				if got, ok := m.Lookup(keyed.Number(h)); !ok || got != values[i] {
					t.Fatalf("map of %d keys, %+v: key %d answers %d, %v, want %d (seed %d)", n, c, i, got, ok, values[i], seed)
				}
			}
		}
		for kind := range Kind(kinds) {
			f, err := BuildFilter(Config{Filter: kind, FingerprintBits: 1 + r.IntN(maxFingerprint), Workers: 1}, keyed.Numbers(hashes))
			if err != nil {
				t.Fatal(err)
			}
			for i, h := range hashes {
				if !f.Lookup(keyed.Number(h)) {
					t.Fatalf("%v filter of %d keys misses key %d (seed %d)", kind, n, i, seed)
				}
			}
		}
	}
}

// The space is what the package promises: it does not depend on the machine,
// and hardly on the keys.
func TestOverhead(t *testing.T) {
	const n = 300_000
	r := rand.New(rand.NewPCG(1, 2))
	hashes, values := make([]uint64, n), make([]uint64, n)
	for i := range hashes {
		hashes[i], values[i] = r.Uint64(), r.Uint64()&0xff
	}
	re, err := BuildRetrieval(Config{ValueBits: 8}, keyed.Numbers(hashes), values)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, s Stats, most float64) {
		t.Helper()
		if s.Keys != n || s.Overhead < 0 || s.Overhead > most {
			t.Errorf("%s: %d keys, overhead %.4f, want at most %.4f", what, s.Keys, s.Overhead, most)
		}
		if bits := s.Overhead*n*8 + n*8; math.Abs(bits-float64(s.Bits)) > 1 {
			t.Errorf("%s: %d bits do not fit an overhead of %.4f", what, s.Bits, s.Overhead)
		}
	}
	// At this size the last level's 128 to 3000 keys cost a part that is gone
	// at 10^6.
	check("retrieval", re.Stats(), 0.0045)
	for kind, most := range map[Kind]float64{Standard: 0.15, Bumped: 0.0045} {
		f, err := BuildFilter(Config{Filter: kind, FingerprintBits: 8}, keyed.Numbers(hashes))
		if err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprint(kind), f.Stats(), most)
	}
}
