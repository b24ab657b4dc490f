package phf

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/syncd-io/syncd/bfield/internal/workers"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// seeds is how many seeds are tried until no two keys have one hash. Of 10^9 keys two have
// one in 2.7 % of all cases.
const seeds = 12

// Build builds the function of the keys.
func Build(c Config, keys keyed.List) (*Function, error) {
	bits, err := c.bits()
	if err != nil {
		return nil, err
	}
	if c.Workers, err = workers.Of(c.Workers); err != nil {
		return nil, fmt.Errorf("phf: %w", err)
	}
	for range seeds {
		hashes, differ := distinct(keys, c.Seed)
		if differ {
			return solve(c, bits, hashes)
		}
		c.Seed += mulSalt
	}
	return nil, fmt.Errorf("phf: %d keys: %w: keys that differ have one hash under %d seeds", keys.Len(), ErrUnsolvable, seeds)
}

// distinct returns the hashes of the keys, sorted, each once. differ is false if two
// different keys have one hash.
func distinct(keys keyed.List, seed uint64) (hashes []uint64, differ bool) {
	hashes = make([]uint64, keys.Len())
	for i := range hashes {
		hashes[i] = keys.At(i).Hash(seed)
	}
	slices.Sort(hashes)
	first := map[uint64]int{} // a key of each hash that comes twice
	for i := 1; i < len(hashes); i++ {
		if hashes[i] == hashes[i-1] {
			first[hashes[i]] = -1
		}
	}
	if len(first) == 0 {
		return hashes, true
	}
	for i := range keys.Len() {
		h := keys.At(i).Hash(seed)
		if at, twice := first[h]; twice && at < 0 {
			first[h] = i
		} else if twice && !keys.At(at).Equal(keys.At(i)) {
			return nil, false
		}
	}
	return slices.Compact(hashes), true
}

// solve builds the function of hashes that are sorted and differ.
func solve(c Config, bits int, hashes []uint64) (*Function, error) {
	f := &Function{choiceBits: bits, minimal: c.Minimal, seed: c.Seed, keys: len(hashes)}
	if len(hashes) > 0 {
		f.shards = make([]shard, len(hashes)/shardKeys+1)
	}
	begins := f.cut(hashes)
	choices := make([]uint8, len(hashes))
	if err := f.search(max(1, c.Workers), hashes, choices, begins); err != nil {
		return nil, err
	}
	f.moved = make([]uint16, f.number())
	if f.minimal {
		f.fill(hashes, choices, begins)
	}
	values := make([]uint64, len(choices))
	for i, choice := range choices {
		values[i] = uint64(choice)
	}
	var err error
	f.choices, err = ribbon.BuildRetrieval(ribbon.Config{ValueBits: bits, Seed: c.Seed, Workers: c.Workers}, keyed.Numbers(hashes), values)
	if err != nil {
		return nil, fmt.Errorf("phf: choices of %d keys: %w", len(hashes), errors.Join(ErrUnsolvable, err))
	}
	return f, nil
}

// cut counts the keys of each shard, and returns where they begin.
func (f *Function) cut(hashes []uint64) (begins []int) {
	begins = make([]int, len(f.shards)+1)
	at := 0
	for s := range f.shards {
		begins[s] = at
		for at < len(hashes) && position(hashes[at], uint64(len(f.shards))) == uint64(s) {
			at++
		}
		f.shards[s].keys = uint32(at - begins[s])
	}
	begins[len(f.shards)] = at
	return begins
}

// search finds the salt of each shard and the choices of its keys.
func (f *Function) search(most int, hashes []uint64, choices []uint8, begins []int) error {
	var failed atomic.Int64
	failed.Store(-1)
	idle := make(chan *search, most)
	for range most {
		idle <- &search{choiceBits: f.choiceBits}
	}
	workers.Each(most, len(f.shards), func(i int) {
		s := <-idle
		of, ok := hashes[begins[i]:begins[i+1]], false
		if len(of) <= math.MaxUint16 {
			f.shards[i].salt, ok = s.solve(of, choices[begins[i]:begins[i+1]])
		}
		if !ok {
			failed.Store(int64(i))
		}
		idle <- s
	})
	if i := failed.Load(); i >= 0 {
		return fmt.Errorf("phf: %d keys: %w: shard %d of %d has %d of them", len(hashes), ErrUnsolvable, i, len(f.shards), f.shards[i].keys)
	}
	return nil
}

// fill tells the slots behind the numbers of each shard which free slot stands for them.
func (f *Function) fill(hashes []uint64, choices []uint8, begins []int) {
	var taken []bool
	for i, s := range f.shards {
		m := uint32(slotsOf(int(s.keys), f.choiceBits))
		taken = slices.Grow(taken[:0], int(m))[:m]
		clear(taken)
		for k := begins[i]; k < begins[i+1]; k++ {
			taken[slot(hashes[k], s.salt, uint32(choices[k]), m)] = true
		}
		free := 0
		for at := s.keys; at < m; at++ {
			if !taken[at] {
				continue
			}
			for taken[free] {
				free++
			}
			f.moved[s.moved+uint64(at-s.keys)] = uint16(free)
			free++
		}
	}
}
