package ribbon

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// A Map answers as Go's map does, for keys that come once, twice or often, and
// one that contradicts itself is an error.
func TestMapAgainstGoMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 0))
		c := Config{ValueBits: 1 + r.IntN(64), FingerprintBits: 1 + r.IntN(maxFingerprint), Seed: r.Uint64(), Workers: 1 + r.IntN(3)}
		n := 1 + r.IntN(1<<r.IntN(14))
		distinct := 1 + r.IntN(2*n)
		twin := map[string]uint64{}
		var of [][]byte
		var values []uint64
		for range n {
			key := fmt.Appendf(nil, "key %d", r.IntN(distinct))
			value, ok := twin[string(key)]
			if !ok {
				value = r.Uint64() >> (64 - c.ValueBits)
				twin[string(key)] = value
			}
			of, values = append(of, key), append(values, value)
		}
		m, err := BuildMap(c, keyed.ByteStrings(of), values)
		if err != nil {
			t.Fatalf("%d keys, %+v: %v", n, c, err)
		}
		for key, want := range twin {
			if got, ok := m.Lookup(keyed.Bytes([]byte(key))); !ok || got != want {
				t.Fatalf("%d keys, %+v: %q answers %d, %v, want %d", n, c, key, got, ok, want)
			}
		}
		i := r.IntN(n)
		of, values = append(of, of[i]), append(values, values[i]^1)
		if _, err := BuildMap(c, keyed.ByteStrings(of), values); !errors.Is(err, ErrContradiction) {
			t.Fatalf("%d keys, %+v: key %d has two values, error %v", n, c, i, err)
		}
	})
}

// Two keys that only look equal under a seed are built under another.
func TestCollisionsTakeAnotherSeed(t *testing.T) {
	k := keyList{keyed.Numbers([]uint64{1, 2})}
	var tried []uint64
	err := k.build(7, []uint64{3, 4}, func(seed uint64) error {
		tried = append(tried, seed)
		if len(tried) < 3 {
			return errContradiction
		}
		return nil
	})
	if err != nil || len(tried) != 3 || tried[0] != 7 || tried[1] == tried[0] || tried[2] == tried[1] {
		t.Errorf("error %v after the seeds %v", err, tried)
	}
	err = k.build(7, []uint64{3, 4}, func(uint64) error { return errContradiction })
	if !errors.Is(err, ErrUnsolvable) || errors.Is(err, ErrContradiction) {
		t.Errorf("keys that collide under each seed: %v", err)
	}
	a, b := fieldtest.Colliding(7)
	both := keyed.ByteStrings([][]byte{a, b})
	m, err := BuildMap(Config{ValueBits: 3, FingerprintBits: 20, Seed: 7}, both, []uint64{3, 4})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{3, 4} {
		if v, ok := m.Lookup(both.At(i)); v != want || !ok || both.At(0).Hash(7) != both.At(1).Hash(7) {
			t.Errorf("of two keys with one hash, %d answers %d, %v", i, v, ok)
		}
	}
}

// TestContradictionAmongMany has one key two million times before two that
// contradict. Comparing all pairs would take longer than a test may.
func TestContradictionAmongMany(t *testing.T) {
	const n = 1 << 21
	keys := make([]uint64, n+2)
	k := keyList{keyed.Numbers(keys)}
	values := make([]uint64, n+2)
	if err := k.contradiction(1, values); err != nil {
		t.Errorf("one key with one value: %v", err)
	}
	keys[n], keys[n+1], values[n+1] = 1, 1, 1
	err := k.contradiction(1, values)
	if !errors.Is(err, ErrContradiction) || !strings.Contains(err.Error(), "keys 2097152 and 2097153") {
		t.Errorf("error %v, want of keys %d and %d", err, n, n+1)
	}
}

// Keys that all begin in one bucket of the first level go on to the next ones.
func TestCrowdedBucket(t *testing.T) {
	const n = 20_000
	l := level{buckets: (n*overloadSlots/overloadKeys + bucketSlots) / bucketSlots}
	seen := map[uint64]uint64{}
	var list []entry
	for h := uint64(0); len(list) < n; h++ {
		if l.start(rehash(h, 0))/bucketSlots == 3 {
			list = append(list, entry{h, h & 0xff})
			seen[h] = h & 0xff
		}
	}
	tb, err := newTable(maxLevels, 8, 0, n, 1, func(into []entry, from int) { copy(into, list[from:]) })
	if err != nil {
		t.Fatal(err)
	}
	for h, want := range seen {
		p, ok := tb.find(h)
		if got := tb.value(p, 0, 8); !ok || got != want {
			t.Fatalf("hash %d answers %d, want %d", h, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	two := keyed.ByteStrings([][]byte{[]byte("a"), []byte("b")})
	retrieval := func(c Config, values []uint64) error { _, err := BuildRetrieval(c, two, values); return err }
	ofMap := func(c Config, values []uint64) error { _, err := BuildMap(c, two, values); return err }
	filter := func(c Config, _ []uint64) error { _, err := BuildFilter(c, two); return err }
	coded := func(c Config, values []uint64) error { _, err := BuildCoded(c, two, values); return err }
	for _, r := range []struct {
		what   string
		build  func(Config, []uint64) error
		c      Config
		values []uint64
	}{
		{"no value bits", retrieval, Config{}, []uint64{0, 0}},
		{"65 value bits", retrieval, Config{ValueBits: 65}, []uint64{0, 0}},
		{"a value too wide", retrieval, Config{ValueBits: 3}, []uint64{7, 8}},
		{"a value missing", retrieval, Config{ValueBits: 3}, []uint64{7}},
		{"no fingerprint bits", ofMap, Config{ValueBits: 3}, []uint64{7, 7}},
		{"a map's missing value", ofMap, Config{ValueBits: 3, FingerprintBits: 8}, nil},
		{"a coded one's missing value", coded, Config{}, []uint64{7}},
		{"33 fingerprint bits", filter, Config{FingerprintBits: 33}, nil},
		{"an unknown filter", filter, Config{FingerprintBits: 8, Filter: 3}, nil},
		{"-1 workers of a retrieval", retrieval, Config{ValueBits: 3, Workers: -1}, []uint64{7, 7}},
		{"257 workers of a map", ofMap, Config{ValueBits: 3, FingerprintBits: 8, Workers: 257}, []uint64{7, 7}},
		{"257 workers of a filter", filter, Config{FingerprintBits: 8, Workers: 257}, nil},
		{"257 workers of a coded one", coded, Config{Workers: 257}, []uint64{7, 7}},
	} {
		if r.build(r.c, r.values) == nil {
			t.Errorf("%s: built without an error", r.what)
		}
	}
}

// Look-ups, alone and in batches, allocate nothing.
func TestLookupsDoNotAllocate(t *testing.T) {
	hashes, values, found := make([]uint64, 100), make([]uint64, 100), make([]bool, 100)
	for i := range hashes {
		hashes[i], values[i] = uint64(i), uint64(i)
	}
	m, err := BuildMap(Config{ValueBits: 64, FingerprintBits: 8}, keyed.Numbers(hashes), values)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		m.Lookup(keyed.Number(5))
		m.LookupBatch(keyed.Numbers(hashes), values, found)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
