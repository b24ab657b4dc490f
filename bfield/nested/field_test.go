package nested

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// draws are laws of values: a name, and a value of a random number.
var draws = []struct {
	name string
	of   func(r *rand.Rand) uint64
	less float64 // the field is to take less than this part of one B-field
}{
	{"one of 256 alike", func(r *rand.Rand) uint64 { return r.Uint64N(256) }, 1.05},
	{"one value", func(*rand.Rand) uint64 { return 7 }, 1.05},
	{"nine tenths one", func(r *rand.Rand) uint64 {
		if r.IntN(10) > 0 {
			return 1 << 40
		}
		return r.Uint64N(256)
	}, 0.7},
	{"geometric", func(r *rand.Rand) uint64 { return uint64(r.ExpFloat64() / math.Ln2) }, 0.9},
}

// TestField holds the rate of false positives to its plan within five standard deviations,
// and the size to that of one field.
func TestField(t *testing.T) {
	const n, seed, alpha = 100_000, 9, 1.0 / 256
	for _, d := range draws {
		t.Run(d.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			keys, values := make([]uint64, n), make([]uint64, n)
			for i := range keys {
				keys[i], values[i] = r.Uint64(), d.of(r)
			}
			f, err := Build(Config{FalsePositive: alpha, Seed: r.Uint64()}, keyed.Numbers(keys), values)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range keys {
				if v, ok := f.Lookup(keyed.Number(k)); !ok || v != values[i] {
					t.Fatalf("key %x is %d, %v; want %d (seed %d)", k, v, ok, values[i], seed)
				}
			}
			s := f.Stats()
			const strangers = 1_000_000
			found := 0
			for range strangers {
				if _, ok := f.Lookup(keyed.Number(r.Uint64())); ok {
					found++
				}
			}
			if mean := s.FalsePositive * strangers; math.Abs(float64(found)-mean) > 5*math.Sqrt(mean) || s.FalsePositive > 1.01*alpha {
				t.Errorf("%d of %d strangers are found; planned %.0f, α %.5f", found, strangers, mean, s.FalsePositive)
			}
			_, counts := ranked(values)
			plain, err := bfield.NewPlan(bfield.Config{Keys: n, Values: uint64(len(counts)), FalsePositive: alpha})
			if err != nil {
				t.Fatal(err)
			}
			got := float64(s.Bits) / n
			if got > d.less*plain.PaperBitsPerKey() {
				t.Errorf("%.2f bits a key; one field takes %.2f", got, plain.PaperBitsPerKey())
			}
			t.Logf("%d layers, %.2f bits a key; one field %.2f; α %.6f, measured %.6f", s.Layers, got, plain.PaperBitsPerKey(), s.FalsePositive, float64(found)/strangers)
		})
	}
}

func TestRefuses(t *testing.T) {
	two := [][]byte{[]byte("a"), []byte("a")}
	for name, c := range map[string]struct {
		values []uint64
		alpha  float64
		want   error
	}{
		"two values":    {[]uint64{1, 2}, 0.01, bfield.ErrContradiction},
		"a value less":  {[]uint64{1}, 0.01, bfield.ErrConfig},
		"a rate of 0":   {[]uint64{1, 1}, 0, bfield.ErrConfig},
		"a rate of NaN": {[]uint64{1, 1}, math.NaN(), bfield.ErrConfig},
		"a rate of 1":   {[]uint64{1, 1}, 1, bfield.ErrConfig},
	} {
		if _, err := Build(Config{FalsePositive: c.alpha}, keyed.ByteStrings(two), c.values); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
