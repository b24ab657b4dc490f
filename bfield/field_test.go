package bfield

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/internal/seeded"
)

// TestUntilRepaired goes through the life of a field of which others remember the keys:
// insertions, repair, more insertions, saving between. At each point an inserted key is
// never Absent, its value is among the candidates, and a wrong value is as rare as the
// package's documentation says.
func TestUntilRepaired(t *testing.T) {
	shapes := maps.Clone(shapes)
	// Windows often agree by chance, and then mostly on what is no value.
	shapes["few of many codes"] = shape(2, 14, 4, 3, 5)
	for name, c := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := seeded.New(t)
			c.Keys = 20_000
			f, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			var keys, values []uint64
			feed := func(yield func(key keyed.Key, value uint64) bool) error {
				for _, i := range random.Perm(len(keys)) {
					yield(keyed.Number(keys[i]), values[i])
					yield(keyed.Number(random.Uint64()), random.Uint64N(c.Values)) // strangers do no harm
				}
				return nil
			}
			indeterminate := 0
			check := func() {
				wrong := 0
				for i, k := range keys {
					v, a := f.Lookup(keyed.Number(k))
					switch {
					case a == Absent:
						t.Fatalf("key %d of %d is absent", i, len(keys))
					case a == Indeterminate:
						indeterminate++
						if v != 0 || f.Stats().Repaired {
							t.Fatalf("key %d of %d, repaired %v, is indeterminate with value %d", i, len(keys), f.Stats().Repaired, v)
						}
					case v != values[i]:
						wrong++
					}
					if got := f.Candidates(keyed.Number(k)); !slices.Contains(got, values[i]) && len(got) < MaxCandidates {
						t.Fatalf("key %d of %d, value %d, has candidates %v", i, len(keys), values[i], got)
					}
				}
				// At most 2·10^4 keys, one in two indeterminate, one in 10^3 of
				// these wrong (κ = 4): 20 may be.
				if wrong > 0 && f.Stats().Repaired || wrong > 60 {
					t.Fatalf("%d of %d keys answer a wrong value, repaired %v", wrong, len(keys), f.Stats().Repaired)
				}
			}
			for _, n := range []int{1, 5000, 4000, 3000, 7000, 1} {
				for range n {
					k, v := random.Uint64(), random.Uint64N(c.Values)
					before, _, err := f.Add(keyed.Number(k), v)
					if err != nil {
						t.Fatal(err)
					}
					if before == Absent { // else it is taken for another
						keys, values = append(keys, k), append(values, v)
					}
				}
				check()
				if f, err = FieldOf(marshal(t, f)); err != nil { // what is not repaired stays so
					t.Fatal(err)
				}
				check()
				if f, err = f.RepairedFrom(feed); err != nil {
					t.Fatal(err)
				}
				check()
			}
			if indeterminate == 0 && c.Values > 1 {
				t.Error("no key was ever indeterminate: the test tests nothing")
			}
		})
	}
}

// TestSkewedValues gives all keys one value: the rate stays the planned one,
// where without whitening it is 1.7 times as high.
func TestSkewedValues(t *testing.T) {
	random := seeded.New(t)
	const n, trials = 100_000, 400_000
	c := shapes["two bits"]
	c.Keys, c.Values = n, 276
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = random.Uint64()
	}
	f, err := Build(c, keyed.Numbers(keys), make([]uint64, n))
	if err != nil {
		t.Fatal(err)
	}
	hits := 0
	for range trials {
		if _, a := f.Lookup(keyed.Number(random.Uint64())); a == Found {
			hits++
		}
	}
	if want := f.Plan().FalsePositive() * trials; math.Abs(float64(hits)-want) > 0.02*want+6*math.Sqrt(want) {
		t.Errorf("%d of %d strangers are found, expected %.0f", hits, trials, want)
	}
}

// TestPlacesAreIndependent: with few keys and a low α, strangers that share the
// windows of a key but for a shift would be found. The expected count is 4 or 5;
// places in arithmetic progression give about 50.
func TestPlacesAreIndependent(t *testing.T) {
	random := seeded.New(t)
	c := shape(276, 24, 2, 14, 20.36) // α = 2^-20
	c.Keys = 1000
	keys := make([]uint64, c.Keys)
	for i := range keys {
		keys[i] = random.Uint64()
	}
	f, err := Build(c, keyed.Numbers(keys), make([]uint64, len(keys)))
	if err != nil {
		t.Fatal(err)
	}
	hits := 0
	for range 5_000_000 {
		if _, a := f.Lookup(keyed.Number(random.Uint64())); a == Found {
			hits++
		}
	}
	if hits > 25 {
		t.Errorf("%d strangers are found, expected 5", hits)
	}
}

// TestSize holds the arrays to the predicted size: no more than 1 % above
// m·κ/(1−β), and no more than the square of β below.
func TestSize(t *testing.T) {
	random := seeded.New(t)
	const n = 40_000
	for name, c := range shapes {
		c.Keys = n
		keys, values := make([]uint64, n), make([]uint64, n)
		for i := range keys {
			keys[i], values[i] = random.Uint64(), random.Uint64N(c.Values)
		}
		f, err := Build(c, keyed.Numbers(keys), values)
		if err != nil {
			t.Fatal(err)
		}
		p := f.Plan()
		got, want, beta := f.Stats().BitsPerKey, p.PaperBitsPerKey(), p.PaperIndeterminate()
		// The last arrays are larger than a few keys need.
		spare := float64(len(f.levels)) * leastBits / n
		if got > 1.01*want+spare || got < (1-1.2*beta*beta)*0.99*want {
			t.Errorf("%s: %.3f bits a key, m·κ/(1−β) is %.3f, β %.3g", name, got, want, beta)
		}
	}
}

func TestRefusals(t *testing.T) {
	c := shapes["two bits"]
	c.Keys = 10
	if _, err := Build(c, keyed.ByteStrings([][]byte{[]byte("k")}), []uint64{256}); !errors.Is(err, ErrValue) {
		t.Errorf("building with value 256 of 256: %v", err)
	}
	if _, err := Build(c, keyed.ByteStrings([][]byte{[]byte("k")}), nil); !errors.Is(err, ErrConfig) {
		t.Errorf("building from a key without a value: %v", err)
	}
	empty, err := Build(c, keyed.List{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := empty.Candidates(keyed.Bytes([]byte("k"))); got != nil {
		t.Errorf("candidates in an empty field: %v", got)
	}
	for a, want := range []string{"absent", "found", "indeterminate", "Answer(3)"} {
		if got := Answer(a).String(); got != want {
			t.Errorf("answer %d is called %s", a, got)
		}
	}
}
