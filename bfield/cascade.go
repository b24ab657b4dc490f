package bfield

import (
	"cmp"
	"fmt"
	"slices"
)

// fewEntries is a number of entries that are sorted without a second thought.
const fewEntries = 4096

// cascade makes the secondary arrays for entries that are all in the primary
// one, until none is indeterminate. Arrays of an earlier cascade are dropped:
// the keys that need them are found again by the same pass over all entries
// that finds those which need them since.
func (f *Field) cascade(s source) error {
	f.levels = f.levels[:1]
	return f.deepen(f.indeterminate(s, 1))
}

// deepen makes one secondary array after the other for the entries that those
// before leave indeterminate.
func (f *Field) deepen(pending []entry) error {
	before := len(pending) * 2
	for len(pending) > 0 {
		// Two values of one key stay indeterminate in each array. They are
		// looked for when few entries are left, or when they do not get fewer.
		if len(pending) <= fewEntries || len(pending) > before/2 {
			var twice []entry
			if pending, twice = distinct(pending); len(twice) > 0 {
				return fmt.Errorf("a key has the values %d and %d, and there are %d such keys or more: %w", twice[0].value, twice[1].value, len(twice)/2, ErrContradiction)
			}
		}
		if len(f.levels) == MaxLevels {
			return fmt.Errorf("%d keys are indeterminate in %d arrays: %w", len(pending), MaxLevels, ErrCascade)
		}
		before = len(pending)
		f.levels = append(f.levels, newArray(f.plan.arrayBits(uint64(len(pending))), f.plan.Nu))
		f.fill(len(f.levels)-1, sourceOf(pending))
		pending = f.indeterminate(sourceOf(pending), len(f.levels))
	}
	f.repaired = true
	return nil
}

// distinct sorts entries, drops repetitions, and returns beside them the pairs
// of entries with one key and two values.
func distinct(entries []entry) (once, twice []entry) {
	once = slices.Clone(entries)
	slices.SortFunc(once, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.key.a, y.key.a), cmp.Compare(x.key.b, y.key.b), cmp.Compare(x.value, y.value))
	})
	once = slices.Compact(once)
	for i := 1; i < len(once); i++ {
		if once[i].key == once[i-1].key {
			twice = append(twice, once[i-1], once[i])
		}
	}
	return once, twice
}

// Repair gives secondary arrays to all keys that the primary array leaves
// indeterminate, so that each inserted key answers its value. It goes through
// all keys that were ever inserted. If these are more than were planned for, it
// first makes the primary array anew for at least twice as many.
//
// It fails with ErrContradiction if a key was inserted with two values: the
// field stays usable, and such keys are answered Indeterminate. It fails with
// ErrSealed if the keys are no longer there and the field is not repaired.
func (f *Field) Repair() error {
	if f.repaired {
		return nil
	}
	if f.sealed {
		return fmt.Errorf("repair: %w", ErrSealed)
	}
	s := sourceOf(f.journal)
	if n := uint64(len(f.journal)); n > f.plan.Keys {
		f.plan.Keys = min(max(n, 2*f.plan.Keys), max(n, MaxKeys))
		f.levels = []array{newArray(f.plan.arrayBits(f.plan.Keys), f.plan.Nu)}
		f.fill(0, s)
	}
	if err := f.cascade(s); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return nil
}

// Seal repairs the field and then forgets the inserted keys: look-ups go on,
// insertions do not.
func (f *Field) Seal() error {
	if err := f.Repair(); err != nil {
		return err
	}
	f.journal, f.sealed = nil, true
	return nil
}

// Stats are counts of a field.
type Stats struct {
	Keys        uint64  // inserted, repetitions included
	Planned     uint64  // keys that the primary array is for
	Levels      int     // arrays
	Bits        uint64  // of all arrays
	BitsPerKey  float64 // Bits for each inserted key; 0 without keys
	LevelKeys   []uint64
	LevelBits   []uint64
	Repaired    bool // each inserted key answers its value
	JournalKeys int  // keys kept for Repair, 24 bytes each
}

// Stats returns the field's counts.
func (f *Field) Stats() Stats {
	s := Stats{
		Keys: f.levels[0].keys, Planned: f.plan.Keys, Levels: len(f.levels),
		Repaired: f.repaired, JournalKeys: len(f.journal),
	}
	for i := range f.levels {
		s.LevelKeys = append(s.LevelKeys, f.levels[i].keys)
		s.LevelBits = append(s.LevelBits, f.levels[i].bits)
		s.Bits += f.levels[i].bits
	}
	if s.Keys > 0 {
		s.BitsPerKey = float64(s.Bits) / float64(s.Keys)
	}
	return s
}
