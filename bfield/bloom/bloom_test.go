package bloom

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/internal/seeded"
)

// filter, asked for a value: always 0.
type filter struct{ *Filter }

func (f filter) Lookup(key keyed.Key) (uint64, bool) { return 0, f.Filter.Lookup(key) }
func (f filter) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	clear(values)
	for i := range found {
		found[i] = f.Filter.Lookup(keys.At(i))
	}
}

func TestConformance(t *testing.T) {
	for _, c := range []Config{
		{BitsPerKey: 1},
		{BitsPerKey: 13},
		{BitsPerKey: 9.5, Hashes: 1},
		{BitsPerKey: 40, Hashes: 23},
		{BitsPerKey: 1, Kind: Classic},
		{BitsPerKey: 10, Kind: Classic},
		{BitsPerKey: 12, Hashes: 3, Kind: Classic},
	} {
		t.Run(fmt.Sprintf("%v of %v bits", c.Kind, c.BitsPerKey), func(t *testing.T) {
			_, rate := best(c.Kind, c.BitsPerKey)
			if c.Hashes != 0 {
				rate = predicted(c.Kind, c.BitsPerKey, c.Hashes)
			}
			fieldtest.Run(t, fieldtest.Suite{
				Build: func(in fieldtest.Input) (fieldtest.Field, error) {
					c := c
					c.Seed, c.Workers = in.Seed, in.Workers
					f, err := BuildFilter(c, in.List())
					return filter{f}, err
				},
				Load: func(data []byte) (fieldtest.Field, error) {
					f := new(Filter)
					return filter{f}, f.UnmarshalBinary(data)
				},
				Values: 1,
				// One filter lies this near to the mean of all: the bits that are set vary.
				FalsePositive: [2]float64{0.96 * rate, min(1, 1.04*rate)},
				Large:         50_000,
			})
		})
	}
}

// The table of the package's text.
func TestRatesOfTheText(t *testing.T) {
	for _, row := range []struct{ bits, classic, blocked float64 }{
		{8, 2.16, 2.33},
		{10, 0.82, 0.967},
		{13, 0.194, 0.2725},
		{16, 0.046, 0.0844},
		{20, 0.0067, 0.01978},
	} {
		for kind, want := range map[Kind]float64{Classic: row.classic, Blocked: row.blocked} {
			if _, rate := best(kind, row.bits); math.Abs(100*rate/want-1) > 0.01 {
				t.Errorf("%v, %v bits: %.4g %%, the text says %v %%", kind, row.bits, 100*rate, want)
			}
		}
	}
}

// A filter made by insertions is the one that a build of its keys makes, and so is the
// merge of the filters of its halves. Each finds what a map of places finds.
func TestInsertBuildAndMergeAgree(t *testing.T) {
	r := seeded.New(t)
	for _, kind := range []Kind{Blocked, Classic} {
		c := Config{Keys: 500 + r.IntN(20_000), BitsPerKey: 2 + 10*r.Float64(), Kind: kind, Seed: r.Uint64()}
		keys := make([]uint64, c.Keys)
		for i := range keys {
			keys[i] = r.Uint64()
		}
		built, err := BuildFilter(c, keyed.Numbers(keys))
		if err != nil {
			t.Fatal(err)
		}
		var parts [3]*Filter
		for i := range parts {
			if parts[i], err = New(c); err != nil {
				t.Fatal(err)
			}
		}
		for i, k := range keys {
			parts[0].Insert(keyed.Number(k))
			parts[1+i%2].Insert(keyed.Number(k))
		}
		if err := parts[1].Merge(parts[2]); err != nil {
			t.Fatal(err)
		}
		want, _ := built.MarshalBinary()
		for i, f := range parts[:2] {
			if got, _ := f.MarshalBinary(); string(got) != string(want) {
				t.Errorf("%v: filter %d of %d keys differs from the one that was built", kind, i, c.Keys)
			}
		}
		other := c
		other.Seed++
		if f, _ := New(other); !errors.Is(f.Merge(built), ErrDifferent) {
			t.Error("filters of two seeds are merged")
		}
	}
}

// FalsePositive of Stats is the probability that all bits of a stranger are set, counted
// here bit by bit.
func TestStatsCountTheBits(t *testing.T) {
	r := seeded.New(t)
	f, err := New(Config{Keys: 3000, BitsPerKey: 7, Hashes: 4, Seed: r.Uint64()})
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		f.Insert(keyed.Number(r.Uint64()))
	}
	var rate float64
	for b := range f.size / 8 {
		ones := 0
		for _, w := range f.words[8*b : 8*b+8] {
			ones += bits.OnesCount64(w)
		}
		rate += math.Pow(float64(ones)/512, 4)
	}
	rate /= float64(f.size / 8)
	if s := f.Stats(); math.Abs(s.FalsePositive-rate) > 1e-9 || s.Keys != 3000 || s.Bits != 64*f.size || s.Hashes != 4 {
		t.Errorf("Stats is %+v; the rate is %v", s, rate)
	}
}

// Asked for a rate, a filter has it, and one of an eighth of a bit less has not.
func TestFalsePositiveChoosesTheBits(t *testing.T) {
	for _, kind := range []Kind{Blocked, Classic} {
		for _, rate := range []float64{0.5, 0.1, 0.01, 1e-3, 1e-5} {
			bits, err := Config{Kind: kind}.bitsFor(rate)
			if err != nil {
				t.Fatal(err)
			}
			_, has := best(kind, bits)
			_, less := best(kind, bits-1.0/8)
			if has > rate || less <= rate && bits > 1 {
				t.Errorf("%v, rate %v: %v bits have %v, an eighth less %v", kind, rate, bits, has, less)
			}
		}
	}
}

func TestConfigsThatCannotBe(t *testing.T) {
	for _, c := range []Config{
		{},
		{Keys: -1, BitsPerKey: 10},
		{BitsPerKey: 0.5},
		{BitsPerKey: 65},
		{BitsPerKey: math.NaN()},
		{BitsPerKey: math.Inf(1)},
		{FalsePositive: math.NaN()},
		{FalsePositive: 0.6},
		{FalsePositive: 1e-10},
		{FalsePositive: 1e-9, Hashes: 1},
		{BitsPerKey: 10, Kind: kinds},
		{BitsPerKey: 10, Hashes: 33},
		{BitsPerKey: 10, Hashes: -1},
		{BitsPerKey: 64, Keys: math.MaxInt},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v: a filter is made", c)
		}
	}
	if _, err := BuildFilter(Config{BitsPerKey: 10, Workers: 257}, keyed.List{}); err == nil {
		t.Error("257 workers build")
	}
}
