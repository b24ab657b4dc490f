package cuckoo

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/internal/seeded"
)

// A Table whose keys do not look the same does what a Go map does for the keys that are
// in it.
func TestTableEqualsTwin(t *testing.T) {
	for _, c := range []Config{
		{ValueBits: 8, FalsePositive: 0x1p-9},
		{ValueBits: 40, FalsePositive: 0x1p-12, Hashes: 3, Slots: 2},
		{ValueBits: 1, FalsePositive: 0x1p-13, Hashes: 4, Slots: 1},
		{ValueBits: 3, FalsePositive: 0x1p-10, Slots: 1, Keys: 4000},
		{ValueBits: 0, FalsePositive: 0x1p-10, Slots: 8},
	} {
		r := seeded.New(t)
		c.Seed = r.Uint64()
		table, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		twin := map[uint64]uint64{}
		var recent [64]uint64
		for i := range 13_000 {
			k := recent[r.IntN(len(recent))]
			v, had := twin[k]
			if r.IntN(3) == 0 {
				if !had {
					continue // never delete what was never inserted
				}
				if c.ValueBits > 0 && table.Delete(keyed.Number(k), v^1) {
					t.Fatalf("%+v, step %d: deleted %#x with another value", c, i, k)
				}
				if !table.Delete(keyed.Number(k), v) {
					t.Fatalf("%+v, step %d: %#x was not there", c, i, k)
				}
				delete(twin, k)
			} else {
				k, v = r.Uint64(), r.Uint64()&(1<<c.ValueBits-1)
				if looksTaken(table, k) {
					continue
				}
				recent[r.IntN(len(recent))] = k
				if err := table.Insert(keyed.Number(k), v); err != nil {
					t.Fatalf("%+v, step %d: %v", c, i, err)
				}
				twin[k] = v
			}
			if i == 7_000 {
				table = savedTable(t, table)
			}
		}
		for k, v := range twin {
			if got, ok := table.Lookup(keyed.Number(k)); !ok || got != v {
				t.Fatalf("%+v: %#x has %d, %v, want %d", c, k, got, ok, v)
			}
		}
		s := table.Stats()
		if s.Len != len(twin) || c.Keys == 0 && s.Buckets < 3*tableBase {
			t.Errorf("%d entries, want %d; %+v", s.Len, len(twin), s)
		}
		for k, v := range twin {
			if !table.Delete(keyed.Number(k), v) {
				t.Fatalf("%+v: %#x is gone", c, k)
			}
		}
		if s := table.Stats(); s.Len != 0 || s.Stash != 0 || s.FalsePositive != 0 {
			t.Errorf("after all deletions: %+v", s)
		}
	}
}

func savedTable(t testing.TB, table *Table) *Table {
	t.Helper()
	data, err := table.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	got := new(Table)
	if err := got.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	return got
}

// The rate at which strangers are found is the one that Stats predicts, at every
// shape, planned and after growth. The bounds are 5.5 standard deviations wide:
// less than one false alarm in 10^7 rates.
func TestFalsePositiveRate(t *testing.T) {
	r := seeded.New(t)
	for _, c := range []Config{
		{Keys: 20_000, FalsePositive: 0x1p-6, ValueBits: 8},
		{Keys: 20_000, FalsePositive: 0x1p-8, Hashes: 3},
		{Keys: 20_000, FalsePositive: 0x1p-8, Hashes: 4, Slots: 2, ValueBits: 3},
		{Keys: 20_000, FalsePositive: 0x1p-7, Slots: 1},
		{Keys: 2_000, FalsePositive: 0x1p-10, ValueBits: 1}, // grows to ten times
	} {
		c.Seed = r.Uint64()
		table := newFilled(t, c, 20_000, r)
		const strangers = 200_000
		hits := 0
		for range strangers {
			if _, ok := table.Lookup(keyed.Number(r.Uint64())); ok {
				hits++
			}
		}
		s := table.Stats()
		mean := strangers * s.FalsePositive
		if math.Abs(float64(hits)-mean) > 5.5*math.Sqrt(mean) {
			t.Errorf("%+v: %d of %d strangers, predicted %.1f; %+v", c, hits, strangers, mean, s)
		}
		if c.Keys == 20_000 && s.FalsePositive > c.FalsePositive {
			t.Errorf("%+v: a rate of %v", c, s.FalsePositive)
		}
	}
}

// The loads reached before the first insertion goes to the stash, for one seed; see
// docs/STRUCTURES.md for more shapes and trials.
func TestLoadsReached(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, c := range []struct {
		hashes, slots int
		load          float64
	}{{2, 1, .45}, {2, 2, .88}, {2, 4, .96}, {2, 8, .99}, {3, 1, .89}, {3, 4, .995}, {4, 4, .999}} {
		config := Config{Hashes: c.hashes, Slots: c.slots, FalsePositive: 0x1p-29, Fixed: true, Seed: r.Uint64()}
		config.Keys = int(1 << 16 * planned(c.hashes, c.slots))
		table, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		for table.Stats().Stash == 0 {
			if err := table.Insert(keyed.Number(r.Uint64()), 0); err != nil {
				t.Fatal(err)
			}
		}
		s := table.Stats()
		if s.Load < c.load || s.Load > loads[c.hashes][c.slots]+.03 {
			t.Errorf("H = %d, B = %d: load %.5f, want at least %v", c.hashes, c.slots, s.Load, c.load)
		}
		if reach := table.reach(); s.Work.MostMoved > reach.depth {
			t.Errorf("H = %d, B = %d: %d entries moved, bound %d", c.hashes, c.slots, s.Work.MostMoved, reach.depth)
		}
	}
}

func TestFullTable(t *testing.T) {
	r := seeded.New(t)
	for _, c := range []Config{
		{Fixed: true, ValueBits: 8, FalsePositive: 0x1p-20},
		{ValueBits: 2, FalsePositive: 0x1p-7}, // nine bits: it doubles once
	} {
		c.Seed = r.Uint64()
		table, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		twin := map[uint64]uint64{}
		for range 1 << 20 {
			k, v := r.Uint64(), r.Uint64()&(1<<c.ValueBits-1)
			if looksTaken(table, k) {
				continue
			}
			if err = table.Insert(keyed.Number(k), v); err != nil {
				break
			}
			twin[k] = v
		}
		s := table.Stats()
		if !errors.Is(err, ErrFull) || s.Load < .9 || s.Stash != stashSize || s.Len != len(twin) {
			t.Errorf("%+v: error %v, %+v", c, err, s)
		}
		for k, v := range twin {
			if got, ok := table.Lookup(keyed.Number(k)); !ok || got != v {
				t.Fatalf("%+v: %#x has %d, %v, want %d", c, k, got, ok, v)
			}
		}
		table = savedTable(t, table)
		for k, v := range twin { // and it empties, the stash included
			if !table.Delete(keyed.Number(k), v) {
				t.Fatalf("%+v: %#x is gone", c, k)
			}
		}
		if s := table.Stats(); s.Len != 0 || s.Stash != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// TestDeleteFromTheStash deletes what waits in the stash of a full table, the last first: only
// that is gone.
func TestDeleteFromTheStash(t *testing.T) {
	r := seeded.New(t)
	table, err := New(Config{Fixed: true, FalsePositive: 0x1p-25, Seed: r.Uint64()})
	if err != nil {
		t.Fatal(err)
	}
	var keys []uint64
	var stashed []int
	for table.Stats().Stash < stashSize {
		k, before := r.Uint64(), table.Stats().Stash
		if err := table.Insert(keyed.Number(k), 0); err != nil {
			t.Fatal(err)
		}
		if table.Stats().Stash > before {
			stashed = append(stashed, len(keys))
		}
		keys = append(keys, k)
	}
	for _, i := range slices.Backward(stashed) {
		before := table.Stats().Stash
		if !table.Delete(keyed.Number(keys[i]), 0) {
			t.Fatalf("key %d of %d is not there", i, len(keys))
		}
		if _, ok := table.Lookup(keyed.Number(keys[i])); ok || table.Stats().Stash >= before {
			t.Fatalf("key %d of %d is there after its deletion, or the stash as long as it was", i, len(keys))
		}
	}
	for i, k := range keys {
		if _, ok := table.Lookup(keyed.Number(k)); ok == slices.Contains(stashed, i) {
			t.Errorf("key %d of %d: %v", i, len(keys), ok)
		}
	}
}

// TestTableGrowsInTime: a table of any shape that grows is, behind each insertion, no
// fuller than at the load at which it grows.
func TestTableGrowsInTime(t *testing.T) {
	for hashes := 2; hashes <= maxHashes; hashes++ {
		for slots := 1; slots <= 4; slots++ {
			table, err := New(Config{Hashes: hashes, Slots: slots, FalsePositive: 0x1p-30, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			for k := range uint64(3000) {
				if err := table.Insert(keyed.Number(k), 0); err != nil {
					t.Fatalf("H %d, B %d: %v", hashes, slots, err)
				}
			}
			if got, most := table.Stats().Load, growing(hashes, slots); got > most+.001 {
				t.Errorf("H %d, B %d: load %.4f, above %.4f", hashes, slots, got, most)
			}
		}
	}
}

// Hashes made to share all buckets are refused in the end; nothing grows.
func TestCrowdedTable(t *testing.T) {
	r := seeded.New(t)
	var table *Table
	var begin uint64
	var err error
	for apart := false; !apart; { // by some seeds both buckets of the first fingerprint are the same, whatever the hash
		if table, err = New(Config{Slots: 2, FalsePositive: 0x1p-20, Seed: r.Uint64()}); err != nil {
			t.Fatal(err)
		}
		begin = r.Uint64() << 32
		id := table.identify(begin)
		apart = table.bucketOf(id, 0) != table.bucketOf(id, 1)
	}
	const fit = 2*2 + stashSize
	n := 0
	for h := begin; err == nil; h += 1 << 12 {
		if h-begin > 1<<32 {
			t.Fatalf("only %d such hashes", n)
		}
		id := table.identify(h)
		if table.bucketOf(id, 1) != table.bucketOf(table.identify(begin), 1) {
			continue
		}
		if err = table.insert(h, 0); err == nil {
			n++
		}
	}
	s := table.Stats()
	if !errors.Is(err, ErrCrowded) || n != fit || s.Len != fit || s.Buckets != tableBase {
		t.Errorf("%d keys, then %v; %d fit; %+v", n, err, fit, s)
	}
	savedTable(t, table)
}

func TestConfigsRefused(t *testing.T) {
	for _, c := range []Config{
		{Keys: -1},
		{Keys: math.MaxInt},
		{Hashes: 1},
		{Hashes: 5},
		{Slots: 9},
		{Slots: -1},
		{FalsePositive: -1},
		{FalsePositive: .6},
		{FalsePositive: math.NaN()},
		{FalsePositive: 0x1p-39},
		{ValueBits: -1},
		{ValueBits: 60},
		{Search: -1},
		{Search: 1},
		{Search: math.MaxInt},
	} {
		if table, err := New(c); !errors.Is(err, ErrConfig) || table != nil {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	table, err := New(Config{ValueBits: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Insert(keyed.Bytes([]byte("key")), 256); !errors.Is(err, ErrRange) || table.Len() != 0 {
		t.Errorf("a value of nine bits: error %v", err)
	}
}

// What cannot be told apart is refused or shared, as documented.
func TestConflict(t *testing.T) {
	table, err := New(Config{ValueBits: 4, FalsePositive: .5, Search: 64, Seed: rand.Uint64()})
	if err != nil {
		t.Fatal(err)
	}
	conflicts, shared := 0, 0
	for range 3000 {
		k, v := rand.Uint64(), rand.Uint64N(16)
		old, found := table.Lookup(keyed.Number(k))
		before := table.Len()
		err := table.Insert(keyed.Number(k), v)
		switch {
		case found && old != v:
			conflicts++
			if !errors.Is(err, ErrConflict) || table.Len() != before {
				t.Fatalf("it has %d and gets %d: error %v", old, v, err)
			}
		case found:
			shared++
			if err != nil || table.Len() != before {
				t.Fatalf("it has %d and gets it again: error %v", v, err)
			}
		case errors.Is(err, ErrFull):
		case err != nil || table.Len() != before+1:
			t.Fatal(err)
		}
	}
	if conflicts == 0 || shared == 0 {
		t.Errorf("%d conflicts, %d shared", conflicts, shared)
	}
}
