package main

import (
	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/cuckoo"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// kind is one of the structures.
type kind struct {
	name  string
	build func(t *task) (*built, error)
}

// goMap is the name of that to which times are ratios.
const goMap = "Go map"

var kinds = []kind{
	{"B-field", buildField},
	{"BuRR with fingerprints", buildRibbon},
	{"cuckoo table of fingerprints", buildTable},
	{"exact cuckoo map", buildWide},
	{goMap, buildMap},
	{"Bloom filter a value", buildBlooms},
	{"ribbon filter a value", buildRibbons},
	{"perfect hash, array", buildPerfect},
}

// cannot says why a structure does not serve a point.
type cannot string

func (c cannot) Error() string { return string(c) }

// task is what a structure is built of: its input, which it does not change.
type task struct {
	point
	keys, values []uint64
	seed         uint64
}

// built is a structure that holds the task's keys.
type built struct {
	planned float64 // rate of false positives
	bits    int     // as the structure itself says; 0 if it does not
	// answer tells how many values the key may have, and the first of them.
	answer func(key uint64) (value uint64, several int)
	// among tells whether the value is one of several; nil if several are not an answer.
	among func(key, value uint64) bool
	// single and batch look keys up and count those found.
	single, batch func(keys []uint64) int
	// keep refers to all of the structure.
	keep any
}

// group is how many keys a batch has.
const group = 256

// groups calls f for each batch.
func groups(keys []uint64, f func(keys []uint64)) {
	for len(keys) > 0 {
		n := min(group, len(keys))
		f(keys[:n])
		keys = keys[n:]
	}
}

func one(v uint64, ok bool) (uint64, int) {
	if ok {
		return v, 1
	}
	return 0, 0
}

func count(found []bool) (n int) {
	for _, ok := range found {
		if ok {
			n++
		}
	}
	return n
}

func buildField(t *task) (*built, error) {
	c := bfield.Config{Keys: uint64(t.Keys), Values: uint64(t.Values), FalsePositive: t.rate(), Seed: t.seed, Workers: 1}
	f, err := bfield.Build(c, keyed.Numbers(t.keys), t.values)
	if err != nil {
		return nil, err
	}
	return &built{
		planned: f.Plan().FalsePositive(), bits: int(f.Stats().Bits), keep: f,
		answer: func(key uint64) (uint64, int) {
			v, a := f.Lookup(keyed.Number(key))
			switch a {
			case bfield.Found:
				return v, 1
			case bfield.Absent:
				return 0, 0
			default:
				return 0, 2
			}
		},
		single: func(keys []uint64) (n int) {
			for _, k := range keys {
				if _, a := f.Lookup(keyed.Number(k)); a == bfield.Found {
					n++
				}
			}
			return n
		},
		batch: func(keys []uint64) (n int) {
			var values [group]uint64
			var answers [group]bfield.Answer
			groups(keys, func(keys []uint64) {
				f.LookupBatch(keyed.Numbers(keys), values[:len(keys)], answers[:len(keys)])
				for _, a := range answers[:len(keys)] {
					if a == bfield.Found {
						n++
					}
				}
			})
			return n
		},
	}, nil
}

func buildRibbon(t *task) (*built, error) {
	c := ribbon.Config{ValueBits: t.valueBits(), FingerprintBits: t.Bits, Seed: t.seed, Workers: 1}
	m, err := ribbon.BuildMap(c, keyed.Numbers(t.keys), t.values)
	if err != nil {
		return nil, err
	}
	return &built{
		planned: m.Stats().FalsePositive, bits: m.Stats().Bits, keep: m,
		answer: func(key uint64) (uint64, int) { return one(m.Lookup(keyed.Number(key))) },
		single: func(keys []uint64) (n int) {
			for _, k := range keys {
				if _, ok := m.Lookup(keyed.Number(k)); ok {
					n++
				}
			}
			return n
		},
		batch: inBatches(func(keys, values []uint64, found []bool) { m.LookupBatch(keyed.Numbers(keys), values, found) }),
	}, nil
}

func inBatches(lookup func(keys, values []uint64, found []bool)) func(keys []uint64) int {
	return func(keys []uint64) (n int) {
		var values [group]uint64
		var found [group]bool
		groups(keys, func(keys []uint64) {
			lookup(keys, values[:len(keys)], found[:len(keys)])
			n += count(found[:len(keys)])
		})
		return n
	}
}

func buildTable(t *task) (*built, error) {
	m, err := cuckoo.New(cuckoo.Config{Keys: t.Keys, FalsePositive: t.rate(), ValueBits: t.valueBits(), Distinct: true, Seed: t.seed})
	if err != nil {
		return nil, err
	}
	for i, k := range t.keys {
		if err := m.Insert(keyed.Number(k), t.values[i]); err != nil {
			return nil, err
		}
	}
	return &built{
		planned: m.Stats().FalsePositive, bits: m.Stats().Bytes * 8, keep: m,
		answer: func(key uint64) (uint64, int) { return one(m.Lookup(keyed.Number(key))) },
		single: func(keys []uint64) (n int) {
			for _, k := range keys {
				if _, ok := m.Lookup(keyed.Number(k)); ok {
					n++
				}
			}
			return n
		},
		batch: inBatches(func(keys, values []uint64, found []bool) { m.LookupBatch(keyed.Numbers(keys), values, found) }),
	}, nil
}

func buildWide(t *task) (*built, error) {
	m, err := cuckoo.NewWide[uint64, uint64](cuckoo.MapConfig{Keys: t.Keys, Seed: t.seed})
	if err != nil {
		return nil, err
	}
	for i, k := range t.keys {
		if err := m.Set(k, t.values[i]); err != nil {
			return nil, err
		}
	}
	return &built{
		bits: m.Stats().Bytes * 8, keep: m,
		answer: func(key uint64) (uint64, int) { return one(m.Get(key)) },
		single: func(keys []uint64) (n int) {
			for _, k := range keys {
				if _, ok := m.Get(k); ok {
					n++
				}
			}
			return n
		},
		batch: inBatches(func(keys, values []uint64, found []bool) { m.GetBatch(keys, values, found) }),
	}, nil
}

func buildMap(t *task) (*built, error) {
	m := make(map[uint64]uint16, t.Keys)
	for i, k := range t.keys {
		m[k] = uint16(t.values[i])
	}
	single := func(keys []uint64) (n int) {
		for _, k := range keys {
			if _, ok := m[k]; ok {
				n++
			}
		}
		return n
	}
	return &built{
		keep:   m,
		answer: func(key uint64) (uint64, int) { v, ok := m[key]; return one(uint64(v), ok) },
		single: single, batch: single,
	}, nil
}
