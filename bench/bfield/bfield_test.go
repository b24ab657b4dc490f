package bfield_test

import (
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield"
)

const bfieldKeys = 1_000_000

func bfieldConfig() bfield.Config {
	return bfield.Config{Keys: bfieldKeys, Values: 256, Nu: 24, Kappa: 2, Hashes: 8, CellsPerKey: 11.53, Workers: 1}
}

func bfieldDraw() (keys, values, strangers []uint64) {
	random := rand.New(rand.NewPCG(1, 2))
	keys, values, strangers = make([]uint64, bfieldKeys), make([]uint64, bfieldKeys), make([]uint64, bfieldKeys)
	for i := range keys {
		keys[i], values[i], strangers[i] = random.Uint64(), random.Uint64N(256), random.Uint64()
	}
	return keys, values, strangers
}

var sink int

func BenchmarkBField(b *testing.B) {
	keys, values, strangers := bfieldDraw()
	perKey := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/bfieldKeys, "ns/key") }
	var f *bfield.Field
	var err error
	var m map[uint64]uint16
	b.Run("build/map", func(b *testing.B) {
		for b.Loop() {
			m = make(map[uint64]uint16, len(keys))
			for i, k := range keys {
				m[k] = uint16(values[i])
			}
		}
		perKey(b)
	})
	b.Run("build/bfield", func(b *testing.B) {
		for b.Loop() {
			if f, err = bfield.BuildHashes(bfieldConfig(), keys, values); err != nil {
				b.Fatal(err)
			}
		}
		perKey(b)
	})
	for name, asked := range map[string][]uint64{"hit": keys, "miss": strangers} {
		b.Run(name+"/map", func(b *testing.B) {
			for b.Loop() {
				for _, k := range asked {
					if _, ok := m[k]; ok {
						sink++
					}
				}
			}
			perKey(b)
		})
		b.Run(name+"/bfield", func(b *testing.B) {
			for b.Loop() {
				for _, k := range asked {
					if _, a := f.LookupHash(k); a == bfield.Found {
						sink++
					}
				}
			}
			perKey(b)
		})
		out, answers := make([]uint64, len(asked)), make([]bfield.Answer, len(asked))
		b.Run(name+"/batch", func(b *testing.B) {
			for b.Loop() {
				f.LookupHashes(asked, out, answers)
			}
			perKey(b)
		})
	}
}
