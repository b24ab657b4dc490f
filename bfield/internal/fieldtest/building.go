package fieldtest

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

func parallelEqualsSerial(t *testing.T, s Suite) {
	for _, n := range []int{0, 1, 1000, s.Large} {
		in := s.draw(n, 300, true)
		serial := marshal(t, s.build(t, in))
		for _, workers := range []int{2, 7} {
			in.Workers = workers
			if !bytes.Equal(marshal(t, s.build(t, in)), serial) {
				t.Errorf("%d keys: a build by %d workers differs from one by a single one", n, workers)
			}
		}
	}
}

// equalDuplicates inserts keys twice and often, each time with the same value.
func equalDuplicates(t *testing.T, s Suite) {
	for i, n := range []int{1, 2, 100, 5000} {
		for _, hashed := range []bool{false, true} {
			in := s.draw(n, 400+uint64(i), hashed)
			for range min(n, 20) {
				in = in.with(n/2, in.Values[n/2])
			}
			in.Keys = slices.Concat(in.Keys, in.Keys)
			in.Hashes = slices.Concat(in.Hashes, in.Hashes)
			in.Values = slices.Concat(in.Values, in.Values)
			checkAnswers(t, s.build(t, in), in)
		}
	}
}

// contradictions inserts one key a second time with another value, close to
// its first insertion and far from it.
func contradictions(t *testing.T, s Suite) {
	if s.Values == 1 {
		t.Skip("without values nothing contradicts")
	}
	for i, n := range []int{1, 2, 100, 5000, s.Large} {
		for _, hashed := range []bool{false, true} {
			again := []int{0, n / 2, n - 1}
			if n == s.Large {
				again = again[1:2] // one, for the time that a build takes
			}
			in := s.draw(n, 500+uint64(i), hashed)
			for _, j := range again {
				other := in.Values[j] ^ 1
				if s.Values != 0 && other >= s.Values {
					other = 0
				}
				if _, err := s.Build(in.with(j, other)); !errors.Is(err, s.Contradiction) {
					t.Fatalf("key %d of %d inserted twice with values %d and %d: error %v, want %v",
						j, n, in.Values[j], other, err, s.Contradiction)
				}
			}
		}
	}
}

// with returns the input and key i once more, with a value.
func (in Input) with(i int, value uint64) Input {
	if in.Keys != nil {
		in.Keys = append(in.Keys[:len(in.Keys):len(in.Keys)], bytes.Clone(in.Keys[i]))
	} else {
		in.Hashes = append(in.Hashes[:len(in.Hashes):len(in.Hashes)], in.Hashes[i])
	}
	in.Values = append(in.Values[:len(in.Values):len(in.Values)], value)
	return in
}
