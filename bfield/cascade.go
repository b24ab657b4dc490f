package bfield

import (
	"cmp"
	"fmt"
	"slices"
)

// fewEntries is a number of entries that are sorted without a second thought.
const fewEntries = 4096

// cascade makes secondary arrays, for entries that are all in the primary one,
// until no entry is indeterminate. Arrays of an earlier cascade are dropped.
// The pass over all entries that finds the keys which need them since finds
// their keys again, too.
func (f *Field) cascade(s source) error {
	f.levels = f.levels[:1]
	secondary, twice, err := f.secondary(f.indeterminate(s))
	f.levels = append(f.levels, secondary...)
	if err != nil {
		return err
	}
	if len(twice) > 0 {
		return fmt.Errorf("a key has the values %d and %d, and there may be more such keys: %w", twice[0].value, twice[1].value, ErrContradiction)
	}
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

// Repair gives secondary arrays to all keys that the primary array leaves
// indeterminate. Each inserted key then answers its value. It goes through all
// keys that were ever inserted. If these are more than were planned for, it
// first makes the primary array anew, for at least twice as many.
//
// ErrContradiction: a key was inserted with two values. The field stays
// usable, and such keys are answered Indeterminate. It fails with ErrSealed
// if the keys are no longer there and the field is not repaired.
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
		f.fill(&f.levels[0], 0, s)
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
