package bfield

import (
	"fmt"
	"slices"
)

// Union returns a field that holds the keys of f and of g. Its primary array is the
// OR of theirs: bit for bit, that of a field into which both were inserted. So a set
// can be split over machines. Each builds its part alone, planned for the keys of
// all, and the fields are united as they arrive (the paper's "Scalability").
//
// The union is not repaired. Three kinds of keys are answered Indeterminate:
// those that a secondary array of f or g resolved, those that became indeterminate since,
// and those that f and g hold with two values. RepairedFrom ends that when it has gone
// through the keys of both; it refuses a key with two values. No value is wrong
// meanwhile. f and g stay as they are. It fails with ErrConfig unless both have one seed
// and one plan.
func (f *Field) Union(g *Field) (*Field, error) {
	if f.seed != g.seed || f.plan != g.plan || f.levels[0].bits != g.levels[0].bits {
		return nil, fmt.Errorf("unite fields of different seeds or plans: %w", ErrConfig)
	}
	u := f.primary()
	into, from := &u.levels[0], &g.levels[0]
	into.bytes = slices.Clone(into.bytes)
	into.keys += from.keys
	for i, b := range from.bytes {
		into.bytes[i] |= b
	}
	return u, nil
}
