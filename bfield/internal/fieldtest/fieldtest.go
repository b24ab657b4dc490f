// Package fieldtest is the conformance suite of the structures under bfield/:
// what each promises, whatever its inside. A structure's test describes it by a
// Suite and runs it:
//
//	fieldtest.Run(t, fieldtest.Suite{
//		Build: func(in fieldtest.Input) (fieldtest.Field, error) { … },
//		Load:  func(data []byte) (fieldtest.Field, error) { … },
//	})
//
// The package's own test does so with a plain map (example_test.go).
//
// The promises:
//
//   - Every key answers its value.
//   - A key that was never inserted is taken for one as often as predicted, no
//     more and no less.
//   - A batch answers as single look-ups do.
//   - A parallel build equals a serial one in every byte.
//   - Two values for one key are an error, one value twice is not.
//   - What is saved loads and answers alike.
//   - Damaged bytes are refused with an error.
package fieldtest

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// Input is what a Field is built from. Either Keys or Hashes is set, and List is the
// one that is; value i belongs to key i. The suite does not change the slices afterwards.
type Input struct {
	Keys    [][]byte
	Hashes  []uint64 // keys that are uniform 64-bit numbers
	Values  []uint64
	Seed    uint64 // of the structure's hashes
	Workers int    // goroutines that may build at once; ≥ 1
}

// Len returns the number of keys.
func (in Input) Len() int { return len(in.Values) }

// List is the keys.
func (in Input) List() keyed.List {
	if in.Keys != nil {
		return keyed.ByteStrings(in.Keys)
	}
	return keyed.Numbers(in.Hashes)
}

// Field is a built structure. Where a structure has a third answer, its
// adapter maps it to "not ok". A filter answers the value 0; static retrieval
// always answers ok.
type Field interface {
	Lookup(key keyed.Key) (value uint64, ok bool)
	// LookupBatch sets values[i] and found[i] for key i. Where found[i] is false,
	// values[i] may be anything.
	LookupBatch(keys keyed.List, values []uint64, found []bool)
	MarshalBinary() ([]byte, error)
}

// Suite describes a structure to Run.
type Suite struct {
	// Build makes a Field of the input.
	Build func(Input) (Field, error)

	// Load reads what MarshalBinary wrote.
	Load func([]byte) (Field, error)

	// Values is the number of different values: 0 to Values-1. 0 stands for 2^64,
	// and 1 is for a structure that stores no values (a filter).
	Values uint64

	// FalsePositive are the lowest and the highest predicted probability that
	// a key never inserted is found. Both 1 for a structure without a "no".
	FalsePositive [2]float64

	// Contradiction is the error of two values for one key.
	Contradiction error

	// Large is the number of keys of the tests of false positives and of parallel
	// builds. It is enough that workers share the work. 0 stands for 20,000.
	Large int

	// Seed of the suite's own choices; 0 draws one. A failure prints it.
	Seed uint64
}

// Run holds a structure to the promises of this package.
func Run(t *testing.T, s Suite) {
	if s.Seed == 0 {
		s.Seed = uint64(time.Now().UnixNano())
	}
	if s.Large == 0 {
		s.Large = 20_000
	}
	for _, part := range []struct {
		name string
		run  func(*testing.T, Suite)
	}{
		{"EveryKeyAnswers", everyKeyAnswers},
		{"FalsePositives", falsePositives},
		{"BatchEqualsSingle", batchEqualsSingle},
		{"ParallelEqualsSerial", parallelEqualsSerial},
		{"EqualDuplicates", equalDuplicates},
		{"Contradictions", contradictions},
		{"SaveAndLoad", saveAndLoad},
		{"DamagedBytes", damagedBytes},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("replay with fieldtest.Suite{Seed: %d}", s.Seed)
				}
			})
			part.run(t, s)
		})
	}
}

// draw returns n keys that differ, each with a value. All tests of one Suite
// with one salt draw the same keys; other salts draw others.
func (s Suite) draw(n int, salt uint64, hashed bool) Input {
	r := rand.New(rand.NewPCG(s.Seed, salt))
	in := Input{Seed: r.Uint64(), Workers: 1, Values: make([]uint64, n)}
	for i := range in.Values {
		in.Values[i] = s.value(r)
	}
	// Two of these are equal less than once in 10^7 suites.
	for hashed && len(in.Hashes) < n {
		in.Hashes = append(in.Hashes, r.Uint64())
	}
	short := make(map[string]bool) // keys that might come twice
	for !hashed && len(in.Keys) < n {
		// Lengths around the steps of the hash, the empty key among them.
		key := make([]byte, r.IntN(40))
		for i := range key {
			key[i] = byte(r.Uint32())
		}
		if len(key) < 8 {
			if short[string(key)] {
				key = binary.LittleEndian.AppendUint64(key, r.Uint64())
			}
			short[string(key)] = true
		}
		in.Keys = append(in.Keys, key)
	}
	return in
}

func (s Suite) value(r *rand.Rand) uint64 {
	if s.Values == 0 {
		return r.Uint64()
	}
	return r.Uint64N(s.Values)
}

func (s Suite) build(t testing.TB, in Input) Field {
	t.Helper()
	f, err := s.Build(in)
	if err != nil {
		t.Fatalf("building from %d keys: %v", in.Len(), err)
	}
	return f
}
