package bfield

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/bfield/internal/workers"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// Build returns a field that holds key i with values[i], repaired.
// A key twice with one value is fine; with two values it is ErrContradiction.
// The secondary arrays are just as large as they must be. Workers change the
// speed, not one bit of the result.
func Build(c Config, keys keyed.List, values []uint64) (*Field, error) {
	n := keys.Len()
	if n != len(values) {
		return nil, fmt.Errorf("build from %d keys and %d values: %w", n, len(values), ErrConfig)
	}
	plan, err := NewPlan(c)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		if v >= plan.Values {
			return nil, fmt.Errorf("build: value %d of key %d: the values go from 0 to %d: %w", v, i, plan.Values-1, ErrValue)
		}
	}
	plan.Keys = max(plan.Keys, uint64(n))
	f := newField(plan, c.Seed, c.Workers)
	s := source{n, func(chunk []entry, from int) {
		for i := range chunk {
			chunk[i] = entry{f.keyOf(keys.At(from + i)), values[from+i]}
		}
	}}
	f.fill(&f.levels[0], 0, s)
	if err := f.decide(f.indeterminate(s)); err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	return f, nil
}

// source is a list of entries that is read in chunks, by several goroutines at
// once and more than once.
type source struct {
	n    int
	read func(chunk []entry, from int)
}

func sourceOfUndecided(list []undecided) source {
	return source{len(list), func(chunk []entry, from int) {
		for i := range chunk {
			chunk[i] = list[from+i].entry
		}
	}}
}

const (
	// chunkEntries are read at a time: they stay in the first cache.
	chunkEntries = 256
	// parallelFrom is where more than one worker is worth its start.
	parallelFrom = 1 << 15
)

// fill inserts all entries into an array, that of a level. The order does not change an OR.
// So workers can share the work in any way, and go through the array in any order.
func (f *Field) fill(a *array, level int, s source) {
	a.keys += uint64(s.n)
	most := f.workers
	if s.n < parallelFrom {
		most = 1
	}
	if most == 1 && a.bits < stripedFrom {
		f.eachChunk(s, 0, s.n, func(chunk []entry) {
			for i := range chunk {
				a.insert(chunk[i].key.at(level), f.encode(chunk[i]), f.plan.Hashes)
			}
		})
		return
	}
	f.fillSorted(a, level, s, most)
}

// eachChunk reads the entries from from to end.
func (f *Field) eachChunk(s source, from, end int, each func([]entry)) {
	var buffer [chunkEntries]entry
	for from < end {
		chunk := buffer[:min(chunkEntries, end-from)]
		s.read(chunk, from)
		each(chunk)
		from += len(chunk)
	}
}

// undecided is an entry and what its windows have in common in all arrays so
// far. That is more than its own marker.
type undecided struct {
	entry
	acc uint64
}

// indeterminate returns those entries of which the primary array shows more
// than their own marker, in their order.
func (f *Field) indeterminate(s source) []undecided {
	sorted := f.levels[0].bits >= stripedFrom
	return f.share(s.n, func(list []undecided, from, end int) []undecided {
		if sorted {
			return f.indeterminateSorted(s, from, end)
		}
		f.eachChunk(s, from, end, func(chunk []entry) { list = f.undecided(list, chunk) })
		return list
	})
}

// undecided appends to list those entries of a chunk of which the primary
// array shows more than their own marker.
func (f *Field) undecided(list []undecided, chunk []entry) []undecided {
	for _, e := range chunk {
		if acc := f.levels[0].common(e.key, f.mask(), &f.plan); acc != f.encode(e) {
			list = append(list, undecided{e, acc})
		}
	}
	return list
}

// still returns those entries that an array beyond does not decide either.
func (f *Field) still(pending []undecided, a *array, level int) []undecided {
	return f.share(len(pending), func(list []undecided, from, end int) []undecided {
		for _, u := range pending[from:end] {
			if acc := a.common(u.key.at(level), u.acc, &f.plan); acc != f.encode(u.entry) {
				list = append(list, undecided{u.entry, acc})
			}
		}
		return list
	})
}

// share has the workers go through their parts of n things. It returns what
// they found, in the order of the things.
func (f *Field) share(n int, each func(list []undecided, from, end int) []undecided) []undecided {
	most := f.workers
	if n < parallelFrom || most == 1 {
		return each(nil, 0, n)
	}
	found := make([][]undecided, most)
	workers.Each(most, most, func(w int) { found[w] = each(nil, n*w/most, n*(w+1)/most) })
	return slices.Concat(found...)
}
