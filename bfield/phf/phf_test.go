package phf

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/internal/seeded"
)

var configs = []Config{{ChoiceBits: 1}, {ChoiceBits: 2}, {Minimal: true}}

// errTwice is the error of a table for one key with two values.
var errTwice = errors.New("one key with two values")

// table is a static map: the values of keys at their numbers.
type table struct {
	*Function
	values []uint64
}

func tableOf(c Config, in fieldtest.Input) (fieldtest.Field, error) {
	c.Seed, c.Workers = in.Seed, in.Workers
	f, err := Build(c, in.List())
	if err != nil {
		return nil, err
	}
	t := table{f, make([]uint64, f.Slots())}
	set := make([]bool, f.Slots())
	for i, v := range in.Values {
		at := f.Lookup(in.List().At(i))
		if set[at] && t.values[at] != v {
			return nil, errTwice
		}
		t.values[at], set[at] = v, true
	}
	return t, nil
}

func (t table) value(at uint64) uint64 {
	if len(t.values) == 0 {
		return 0
	}
	return t.values[at]
}

func (t table) Lookup(key keyed.Key) (uint64, bool) {
	return t.value(t.Function.Lookup(key)), true
}

func (t table) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	t.Function.LookupBatch(keys, values)
	t.found(values, found)
}

func (t table) found(values []uint64, found []bool) {
	for i := range values {
		values[i], found[i] = t.value(values[i]), true
	}
}

// A table of values at the numbers is held to what all structures promise. What is saved is
// the function alone, so loading has a test of its own (saved_test.go).
func TestConformance(t *testing.T) {
	for _, c := range configs {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			saved := map[string][]uint64{}
			fieldtest.Run(t, fieldtest.Suite{
				Build: func(in fieldtest.Input) (fieldtest.Field, error) {
					f, err := tableOf(c, in)
					if err == nil {
						data, _ := f.MarshalBinary()
						saved[string(data)] = f.(table).values
					}
					return f, err
				},
				Load: func(data []byte) (fieldtest.Field, error) {
					f := new(Function)
					err := f.UnmarshalBinary(data)
					return table{f, saved[string(data)]}, err
				},
				FalsePositive: [2]float64{1, 1},
				Contradiction: errTwice,
				Large:         3 * shardKeys,
			})
		})
	}
}

// The keys of a function have numbers that differ; of a minimal one, all numbers.
func TestNumbersDiffer(t *testing.T) {
	r := seeded.New(t)
	for _, c := range configs {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 10, 100, 1000, shardKeys - 1, shardKeys, 5*shardKeys + r.IntN(1000)} {
			keys := make([]uint64, n)
			for i := range keys {
				keys[i] = r.Uint64()
			}
			c.Seed = r.Uint64()
			f, err := Build(c, keyed.Numbers(keys))
			if err != nil {
				t.Fatal(err)
			}
			seen := make([]bool, f.Slots())
			for _, k := range keys {
				at := f.Lookup(keyed.Number(k))
				if at >= uint64(f.Slots()) || seen[at] {
					t.Fatalf("%+v, %d keys: number %d of %d comes twice, or is none", c, n, at, f.Slots())
				}
				seen[at] = true
			}
			if c.Minimal && f.Slots() != n {
				t.Errorf("%d keys have %d numbers", n, f.Slots())
			}
			for range 100 { // strangers
				if at := f.Lookup(keyed.Number(r.Uint64())); at >= uint64(max(1, f.Slots())) {
					t.Fatalf("%+v, %d keys: a stranger has number %d of %d", c, n, at, f.Slots())
				}
			}
		}
	}
}

// The table of the package's text, for 2^18 keys.
func TestBitsOfTheText(t *testing.T) {
	keys := make([]uint64, 1<<18)
	for i := range keys {
		keys[i] = uint64(i)
	}
	for _, row := range []struct {
		config      Config
		bits, slots float64
	}{
		{Config{ChoiceBits: 1}, 1.03, 2.11},
		{Config{ChoiceBits: 2}, 2.03, 1.031},
		{Config{Minimal: true}, 2.51, 1},
	} {
		f, err := Build(row.config, keyed.Numbers(keys))
		if err != nil {
			t.Fatal(err)
		}
		s := f.Stats()
		bits, slots := float64(s.Bits)/float64(s.Keys), float64(s.Slots)/float64(s.Keys)
		if bits > row.bits || slots > row.slots || s.Keys != len(keys) {
			t.Errorf("%+v: %.3f bits and %.3f numbers a key, %d keys", row.config, bits, slots, s.Keys)
		}
	}
}

// Keys that crowd in one shard, as an adversary could choose them, are refused.
func TestCrowdedShard(t *testing.T) {
	hashes := make([]uint64, 4*shardKeys)
	for i := range hashes {
		hashes[i] = uint64(i)
	}
	if _, err := solve(Config{}, 2, hashes); !errors.Is(err, ErrUnsolvable) {
		t.Errorf("%v", err)
	}
}

func TestConfigsThatCannotBe(t *testing.T) {
	for _, c := range []Config{{ChoiceBits: -1}, {ChoiceBits: 3}, {ChoiceBits: 1, Minimal: true}, {Workers: 257}} {
		if _, err := Build(c, keyed.List{}); err == nil {
			t.Errorf("%+v: a function is built", c)
		}
	}
}

// A stranger in a shard without keys has the number of a key, too.
func TestStrangerInAnEmptyShard(t *testing.T) {
	r := seeded.New(t)
	hashes := make([]uint64, shardKeys+1000) // two shards, of which the first has all
	for i := range hashes {
		hashes[i] = r.Uint64() >> 1
	}
	slices.Sort(hashes)
	f, err := solve(Config{Minimal: true}, 2, hashes)
	if err != nil {
		t.Fatal(err)
	}
	for choice := range uint32(4) {
		if at := f.chosen(1<<63, choice); at >= uint64(f.Slots()) {
			t.Errorf("choice %d: number %d of %d", choice, at, f.Slots())
		}
	}
}

// Keys that differ and have one hash under a seed are built under another; one key twice is
// no such case.
func TestCollisionsTakeAnotherSeed(t *testing.T) {
	const seed = 7
	a, b := fieldtest.Colliding(seed)
	if keyed.Bytes(a).Hash(seed) != keyed.Bytes(b).Hash(seed) {
		t.Fatal("the hash has changed")
	}
	f, err := Build(Config{Minimal: true, Seed: seed}, keyed.ByteStrings([][]byte{a, b, a}))
	if err != nil {
		t.Fatal(err)
	}
	if x, y := f.Lookup(keyed.Bytes(a)), f.Lookup(keyed.Bytes(b)); f.Slots() != 2 || x == y {
		t.Errorf("two keys have the numbers %d and %d of %d", x, y, f.Slots())
	}
	hashes, differ := distinct(keyed.Numbers([]uint64{1, 2, 1}), seed)
	if !differ || len(hashes) != 2 {
		t.Errorf("%d hashes of 2 keys, %v", len(hashes), differ)
	}
}
