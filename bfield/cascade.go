package bfield

import (
	"cmp"
	"fmt"
	"slices"
)

// fewEntries is a number of entries that are sorted without a second thought.
const fewEntries = 4096

// decide gives the field, which has its primary array alone, secondary ones: one after
// the other, for the entries that those before leave indeterminate. The primary array
// is not read.
func (f *Field) decide(pending []undecided) error {
	f.levels = f.levels[:1:1]
	for before := 2 * len(pending); len(pending) > 0; {
		// Contradictions are looked for when few entries are left, or when
		// they do not get fewer.
		if len(pending) <= fewEntries || len(pending) > before/2 {
			var err error
			if pending, err = distinct(pending); err != nil {
				return err
			}
		}
		level := len(f.levels)
		if level == MaxLevels {
			return fmt.Errorf("%d keys are indeterminate in %d arrays: %w", len(pending), MaxLevels, ErrCascade)
		}
		before = len(pending)
		a := newArray(f.plan.arrayBits(uint64(len(pending))), f.plan.Nu)
		f.fill(&a, level, sourceOfUndecided(pending))
		pending = f.still(pending, &a, level)
		f.levels = append(f.levels, a)
	}
	f.repaired = true
	return nil
}

// distinct returns the entries without repetitions, sorted by key. It fails if a key has
// two values, which no array can decide.
func distinct(entries []undecided) ([]undecided, error) {
	slices.SortStableFunc(entries, func(x, y undecided) int {
		return cmp.Or(cmp.Compare(x.key.a, y.key.a), cmp.Compare(x.key.b, y.key.b))
	})
	for i := 1; i < len(entries); i++ {
		if x, y := entries[i-1], entries[i]; x.key == y.key && x.value != y.value {
			return nil, fmt.Errorf("a key has the values %d and %d, and there may be more such keys: %w", x.value, y.value, ErrContradiction)
		}
	}
	return slices.CompactFunc(entries, func(x, y undecided) bool { return x.key == y.key }), nil
}

// Stats are counts of a field.
type Stats struct {
	Keys       uint64  // inserted, repetitions included
	Planned    uint64  // keys that the primary array is for
	Levels     int     // arrays
	Bits       uint64  // of all arrays
	BitsPerKey float64 // Bits for each inserted key; 0 without keys
	LevelKeys  []uint64
	Repaired   bool // each inserted key answers its value
}

// Stats returns the field's counts.
func (f *Field) Stats() Stats {
	s := Stats{Keys: f.levels[0].keys, Planned: f.plan.Keys, Levels: len(f.levels), Repaired: f.repaired}
	for i := range f.levels {
		s.LevelKeys = append(s.LevelKeys, f.levels[i].keys)
		s.Bits += f.levels[i].bits
	}
	if s.Keys > 0 {
		s.BitsPerKey = float64(s.Bits) / float64(s.Keys)
	}
	return s
}
