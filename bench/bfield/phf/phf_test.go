package phf

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/bench/bfield/paired"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/phf"
)

var sizes = []int{1_000_000, 10_000_000}

func draw(n int) []uint64 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = r.Uint64()
	}
	return keys
}

var configs = map[string]phf.Config{
	"r=1":     {ChoiceBits: 1, Workers: 1},
	"r=2":     {ChoiceBits: 2, Workers: 1},
	"minimal": {Minimal: true, Workers: 1},
}

func built(b *testing.B, c phf.Config, keys []uint64) *phf.Function {
	f, err := phf.Build(c, keyed.Numbers(keys))
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// TestBaseline: the peer is a minimal perfect hash function.
func TestBaseline(t *testing.T) {
	keys := draw(100_000)
	f, seen := buildBBHash(keys), make([]bool, len(keys))
	for _, k := range keys {
		at := f.lookup(k)
		if seen[at] {
			t.Fatalf("number %d comes twice", at)
		}
		seen[at] = true
	}
}

// BenchmarkPerfectBuild builds a function by one goroutine.
func BenchmarkPerfectBuild(b *testing.B) {
	each(b, func(b *testing.B, c phf.Config, n int) {
		keys := draw(n)
		paired.Run(b, n, func() { built(b, c, keys) }, func() { buildBBHash(keys) })
	})
}

var sink uint64

// BenchmarkPerfectLookup looks up all keys in another order, one by one, and in batches
// beside one by one of the peer.
func BenchmarkPerfectLookup(b *testing.B) {
	each(b, func(b *testing.B, c phf.Config, n int) {
		keys := draw(n)
		ours, peer := built(b, c, keys), buildBBHash(keys)
		rand.New(rand.NewPCG(3, 4)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		keys = keys[:min(n, 4_000_000)]
		one := func() {
			for _, k := range keys {
				sink += peer.lookup(k)
			}
		}
		b.Run("single", func(b *testing.B) {
			paired.Run(b, len(keys), func() {
				for _, k := range keys {
					sink += ours.Lookup(keyed.Number(k))
				}
			}, one)
			b.ReportMetric(float64(ours.Stats().Bits)/float64(n), "bits/key-ours")
			b.ReportMetric(float64(peer.bits())/float64(n), "bits/key-peer")
			b.ReportMetric(float64(ours.Slots())/float64(n), "numbers/key")
		})
		b.Run("batch", func(b *testing.B) {
			numbers := make([]uint64, 1024)
			paired.Run(b, len(keys), func() {
				for part := range slices.Chunk(keys, len(numbers)) {
					ours.LookupBatch(keyed.Numbers(part), numbers)
					sink += numbers[0]
				}
			}, one)
		})
	})
}

func each(b *testing.B, run func(b *testing.B, c phf.Config, n int)) {
	for name, c := range configs {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) { run(b, c, n) })
		}
	}
}
