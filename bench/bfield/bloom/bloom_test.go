// Package bloom measures bfield/bloom beside bits-and-blooms/bloom, Go's best-known Bloom
// filter.
package bloom

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	peer "github.com/bits-and-blooms/bloom/v3"

	"github.com/syncd-io/syncd/bench/bfield/paired"
	"github.com/syncd-io/syncd/bfield/bloom"
	"github.com/syncd-io/syncd/bfield/keyed"
)

const bitsPerKey = 13

var sizes = []int{1_000_000, 10_000_000}

// draw returns keys of eight bytes, which both take, one behind the other in memory.
func draw(n int, seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	all, keys := make([]byte, 8*n), make([][]byte, n)
	for i := range keys {
		keys[i] = all[8*i : 8*i+8]
		binary.LittleEndian.PutUint64(keys[i], r.Uint64())
	}
	return keys
}

func made(b *testing.B, kind bloom.Kind, n int) *bloom.Filter {
	f, err := bloom.New(bloom.Config{Keys: n, BitsPerKey: bitsPerKey, Kind: kind})
	if err != nil {
		b.Fatal(err)
	}
	return f
}

func theirs(n int) *peer.BloomFilter { return peer.New(uint(bitsPerKey*n), 9) }

var sink int

// BenchmarkBloomInsert inserts n keys into an empty filter, one by one. Both filters have 13
// bits a key; the peer sets 9 of them, as Classic does.
func BenchmarkBloomInsert(b *testing.B) {
	each(b, func(b *testing.B, kind bloom.Kind, n int) {
		keys := draw(n, 1)
		paired.Run(b, n, func() {
			f := made(b, kind, n)
			for _, k := range keys {
				f.Insert(keyed.Bytes(k))
			}
		}, func() {
			f := theirs(n)
			for _, k := range keys {
				f.Add(k)
			}
		})
	})
}

// BenchmarkBloomLookup looks n keys up, all there or all strangers, one by one; and in batches
// beside one by one of the peer.
func BenchmarkBloomLookup(b *testing.B) {
	each(b, func(b *testing.B, kind bloom.Kind, n int) {
		keys := draw(n, 1)
		ours, peers := made(b, kind, n), theirs(n)
		for _, k := range keys {
			ours.Insert(keyed.Bytes(k))
			peers.Add(k)
		}
		rand.New(rand.NewPCG(3, 4)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for name, asked := range map[string][][]byte{"hit": keys, "miss": draw(n, 2)} {
			one := func() {
				for _, k := range asked {
					if peers.Test(k) {
						sink++
					}
				}
			}
			b.Run(name, func(b *testing.B) {
				paired.Run(b, n, func() {
					for _, k := range asked {
						if ours.Lookup(keyed.Bytes(k)) {
							sink++
						}
					}
				}, one)
			})
			b.Run(name+"-batch", func(b *testing.B) {
				found := make([]bool, 1024)
				paired.Run(b, n, func() {
					for part := range slices.Chunk(asked, len(found)) {
						ours.LookupBatch(keyed.ByteStrings(part), found)
						if found[0] {
							sink++
						}
					}
				}, one)
			})
		}
		b.Run("rate", func(b *testing.B) {
			falsely := 0
			strangers := draw(10_000_000, 5)
			for range b.N {
				falsely = 0
				for _, k := range strangers {
					if ours.Lookup(keyed.Bytes(k)) {
						falsely++
					}
				}
			}
			b.ReportMetric(100*float64(falsely)/float64(len(strangers)), "%falsely")
			b.ReportMetric(float64(ours.Stats().Bits)/float64(n), "bits/key")
		})
	})
}

func each(b *testing.B, run func(b *testing.B, kind bloom.Kind, n int)) {
	for _, kind := range []bloom.Kind{bloom.Blocked, bloom.Classic} {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%v/n=%d", kind, n), func(b *testing.B) { run(b, kind, n) })
		}
	}
}
