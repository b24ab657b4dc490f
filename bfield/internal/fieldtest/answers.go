package fieldtest

import (
	"math"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// sizes of the tests that build often: nothing, a few, both sides of words and
// of buckets, and some thousands.
var sizes = []int{0, 1, 2, 3, 7, 63, 64, 65, 100, 127, 128, 129, 1000, 5000}

func everyKeyAnswers(t *testing.T, s Suite) {
	for i, n := range sizes {
		for _, hashed := range []bool{false, true} {
			in := s.draw(n, uint64(i), hashed)
			checkAnswers(t, s.build(t, in), in)
		}
	}
}

// checkAnswers asks for every key of the input.
func checkAnswers(t testing.TB, f Field, in Input) {
	t.Helper()
	for i, want := range in.Values {
		got, ok := f.Lookup(in.List().At(i))
		if !ok || got != want {
			t.Fatalf("key %d of %d answers %d, %v; its value is %d", i, in.Len(), got, ok, want)
		}
	}
}

// falsePositives asks for 300,000 keys that were never inserted. Their number of
// hits is binomial. The bounds are six standard deviations and 12 wide, which a
// right structure leaves less than once in 10^7 runs at any rate. The 12 are for
// small rates, where hits are Poisson.
func falsePositives(t *testing.T, s Suite) {
	if s.FalsePositive[0] == 1 {
		t.Skip("the structure has no no")
	}
	const strangers = 300_000
	f := s.build(t, s.draw(s.Large, 100, true))
	hits := 0
	for _, h := range s.draw(strangers, 101, true).Hashes {
		if _, ok := f.Lookup(keyed.Number(h)); ok {
			hits++
		}
	}
	low, high := strangers*s.FalsePositive[0], strangers*s.FalsePositive[1]
	low -= 6*math.Sqrt(low) + 12
	high += 6*math.Sqrt(high) + 12
	if float64(hits) < low || float64(hits) > high {
		t.Errorf("%d of %d strangers are found: a rate of %.3g, predicted %.3g to %.3g",
			hits, strangers, float64(hits)/strangers, s.FalsePositive[0], s.FalsePositive[1])
	}
}

// batchEqualsSingle asks for keys and strangers, mixed, in batches around the
// size at which structures work.
func batchEqualsSingle(t *testing.T, s Suite) {
	for _, hashed := range []bool{false, true} {
		in := s.draw(3000, 200, hashed)
		f := s.build(t, in)
		asked := s.draw(3000, 201, hashed)
		for i := 0; i < asked.Len(); i += 2 {
			if hashed {
				asked.Hashes[i] = in.Hashes[i]
			} else {
				asked.Keys[i] = in.Keys[i]
			}
		}
		begin := 0
		for _, n := range []int{0, 1, 2, 31, 32, 33, 63, 64, 65, 1000} {
			values, found := make([]uint64, n), make([]bool, n)
			f.LookupBatch(asked.List().Slice(begin, begin+n), values, found)
			for i := range n {
				value, ok := f.Lookup(asked.List().At(begin + i))
				if ok != found[i] || ok && value != values[i] {
					t.Fatalf("key %d of a batch of %d answers %d, %v; alone %d, %v", i, n, values[i], found[i], value, ok)
				}
			}
			begin += n
		}
	}
}
