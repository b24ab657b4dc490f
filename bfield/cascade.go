package bfield

import (
	"cmp"
	"fmt"
	"slices"
)

// fewEntries is a number of entries that are sorted without a second thought.
const fewEntries = 4096

// decide gives the field, which has its primary array alone, secondary ones for the
// entries that it leaves indeterminate.
func (f *Field) decide(pending []undecided) error {
	secondary, twice, err := f.secondary(pending)
	if err != nil {
		return err
	}
	if len(twice) > 0 {
		return fmt.Errorf("a key has the values %d and %d, and there may be more such keys: %w", twice[0].value, twice[1].value, ErrContradiction)
	}
	f.levels = append(f.levels, secondary...)
	f.repaired = true
	return nil
}

// secondary makes one array after the other for the entries that those before
// leave indeterminate. The primary array is not read. Entries with one key and
// different values, which no array can decide, are returned as twice. Those of
// a key are adjacent and in their order.
func (f *Field) secondary(pending []undecided) (levels []array, twice []entry, err error) {
	for before := 2 * len(pending); len(pending) > 0; {
		// Contradictions are looked for when few entries are left, or when
		// they do not get fewer.
		if len(pending) <= fewEntries || len(pending) > before/2 {
			var more []entry
			if pending, more = distinct(pending); len(more) > 0 {
				twice = append(twice, more...)
				continue
			}
		}
		level := len(levels) + 1
		if level == MaxLevels {
			return levels, twice, fmt.Errorf("%d keys are indeterminate in %d arrays: %w", len(pending), MaxLevels, ErrCascade)
		}
		before = len(pending)
		levels = append(levels, newArray(f.plan.arrayBits(uint64(len(pending))), f.plan.Nu))
		a := &levels[level-1]
		f.fill(a, level, sourceOfUndecided(pending))
		pending = f.still(pending, a, level)
	}
	return levels, twice, nil
}

// distinct returns the entries without repetitions, sorted by key, and apart
// from them those of keys with several values.
func distinct(entries []undecided) (once []undecided, twice []entry) {
	slices.SortStableFunc(entries, func(x, y undecided) int {
		return cmp.Or(cmp.Compare(x.key.a, y.key.a), cmp.Compare(x.key.b, y.key.b))
	})
	for from := 0; from < len(entries); {
		end, same := from, true
		for ; end < len(entries) && entries[end].key == entries[from].key; end++ {
			same = same && entries[end].value == entries[from].value
		}
		group := entries[from:end]
		from = end
		if same {
			once = append(once, group[0])
			continue
		}
		for _, u := range group {
			twice = append(twice, u.entry)
		}
	}
	return once, twice
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
