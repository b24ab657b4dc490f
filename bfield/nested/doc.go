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
// "in the next field". It needs few codes, and so few bits. The next field holds the
// keys of the other values only, and so on:
//
//	field 0  ████████████████████████   n keys    → a, b, or "next"
//	field 1  █████                      ρ·n keys  → c, d, e, or "next"
//	field 2  █                                    → all other values
//
// The paper has no code for "next". A key of field 1 is then found in field 0 by
// chance, at that field's rate α, with a wrong value. So here each key is in field 0,
// and no value is ever wrong.
//
// A stranger reaches field 1 with probability α0/(F+1) only, so field 1 may err often.
// The rates must satisfy α0·(F + α1)/(F + 1) = α. The bits a key go with
// −ln α0 − ρ·ln α1, and are fewest at α1 = ρ·F/(1−ρ).
//
// # What is not here
//
// The values' frequencies must be known. So all keys are given at once, and the field
// does not change. Two values or less make one field, which is package bfield's. So do
// values that are all alike frequent.
package nested
