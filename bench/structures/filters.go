package main

import (
	"math"

	"github.com/syncd-io/syncd/bfield/bloom"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// mostFilters is from how many filters on a look-up, which asks all of them, takes longer
// than anything that a filter saves.
const mostFilters = 1024

// planned is a number of keys of which the bits are whole blocks.
const planned = 1 << 12

const tooMany = cannot("a look-up would ask more than 1,024 filters")

// byValue is the keys of each value.
func (t *task) byValue() [][]uint64 {
	sizes := make([]int, t.Values)
	for _, v := range t.values {
		sizes[v]++
	}
	of := make([][]uint64, t.Values)
	for v := range of {
		of[v] = make([]uint64, 0, sizes[v])
	}
	for i, v := range t.values {
		of[v] = append(of[v], t.keys[i])
	}
	return of
}

func buildBlooms(t *task) (*built, error) {
	if t.Values > mostFilters {
		return nil, tooMany
	}
	// The plan of one filter is that of all: to find it takes longer than to build one.
	plan, err := bloom.New(bloom.Config{Keys: planned, FalsePositive: t.rate() / float64(t.Values)})
	if err != nil {
		return nil, err
	}
	c := bloom.Config{BitsPerKey: float64(plan.Stats().Bits) / planned, Hashes: plan.Stats().Hashes, Workers: 1}
	of := make([]*bloom.Filter, t.Values)
	none := 1.0
	for v, keys := range t.byValue() {
		c.Keys, c.Seed = max(1, len(keys)), t.seed+uint64(v)
		f, err := bloom.BuildFilter(c, keyed.Numbers(keys))
		if err != nil {
			return nil, err
		}
		of[v] = f
	}
	bits := 0
	for _, f := range of {
		none *= 1 - f.Stats().FalsePositive
		bits += f.Stats().Bits
	}
	return &built{
		planned: 1 - none, bits: bits, keep: of,
		answer: func(key uint64) (value uint64, n int) {
			for v, f := range of {
				if f.Lookup(keyed.Number(key)) {
					if n == 0 {
						value = uint64(v)
					}
					n++
				}
			}
			return value, n
		},
		among: func(key, value uint64) bool { return of[value].Lookup(keyed.Number(key)) },
		single: func(keys []uint64) (n int) {
			for _, k := range keys {
				for _, f := range of {
					if f.Lookup(keyed.Number(k)) {
						n++
					}
				}
			}
			return n
		},
		batch: func(keys []uint64) (n int) {
			var found [group]bool
			groups(keys, func(keys []uint64) {
				for _, f := range of {
					f.LookupBatch(keyed.Numbers(keys), found[:len(keys)])
					n += count(found[:len(keys)])
				}
			})
			return n
		},
	}, nil
}

func buildRibbons(t *task) (*built, error) {
	if t.Values > mostFilters {
		return nil, tooMany
	}
	fingerprint := t.Bits + t.valueBits() // α/θ a filter
	if fingerprint > 32 {
		return nil, cannot("a filter of a rate below 2^-32")
	}
	of := make([]*ribbon.Filter, t.Values)
	for v, keys := range t.byValue() {
		f, err := ribbon.BuildFilter(ribbon.Config{FingerprintBits: fingerprint, Seed: t.seed + uint64(v), Workers: 1}, keyed.Numbers(keys))
		if err != nil {
			return nil, err
		}
		of[v] = f
	}
	bits := 0
	for _, f := range of {
		bits += f.Stats().Bits
	}
	return &built{
		planned: 1 - math.Pow(1-math.Ldexp(1, -fingerprint), float64(t.Values)), bits: bits, keep: of,
		answer: func(key uint64) (value uint64, n int) {
			for v, f := range of {
				if f.Lookup(keyed.Number(key)) {
					if n == 0 {
						value = uint64(v)
					}
					n++
				}
			}
			return value, n
		},
		among: func(key, value uint64) bool { return of[value].Lookup(keyed.Number(key)) },
		single: func(keys []uint64) (n int) {
			for _, k := range keys {
				for _, f := range of {
					if f.Lookup(keyed.Number(k)) {
						n++
					}
				}
			}
			return n
		},
		batch: func(keys []uint64) (n int) {
			var found [group]bool
			groups(keys, func(keys []uint64) {
				for _, f := range of {
					f.LookupBatch(keyed.Numbers(keys), found[:len(keys)])
					n += count(found[:len(keys)])
				}
			})
			return n
		},
	}, nil
}
