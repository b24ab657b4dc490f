// Package nested stores values of which some are frequent in a chain of B-fields
// (package bfield), in fewer bits than one field takes. It is the paper's "Space
// efficiency optimizations" (N. B. Greenfield, 2014), to any depth.
//
//	f, err := nested.Build(nested.Config{FalsePositive: 1.0 / 256}, keys, values)
//	value, ok := f.Lookup(keyed.Bytes(key))
//
// # The idea
//
// The first field has codes for the F most frequent values and one more, which says
// "in the next field": it needs few codes, and so few bits. The next field holds the
// keys of the other values only, and so on:
//
//	field 0  ████████████████████████   n keys    → a, b, or "next"
//	field 1  █████                      ρ·n keys  → c, d, e, or "next"
//	field 2  █                                    → all other values
//
// Without a code for "next", as the paper has it, a key of field 1 would be found in
// field 0 by chance, at the rate α of that, with a wrong value. So here each key is
// in field 0, and no value is ever wrong.
//
// A stranger comes to field 1 with probability α0/(F+1) only, so that field 1 may
// err often. Of rates with α0·(F + α1)/(F + 1) = α the bits a key, which go with
// −ln α0 − ρ·ln α1, are fewest at α1 = ρ·F/(1−ρ).
//
// # What is not here
//
// The values' frequencies must be known, so that all keys are given at once, and the
// field does not change. Two values or less, or values all alike
// frequent, make one field, which is package bfield's.
package nested
