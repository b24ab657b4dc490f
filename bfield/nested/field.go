package nested

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// Config says what a field is for.
type Config struct {
	// FalsePositive is α, the wanted probability that a key which was not given is
	// answered with a value. It is from bfield.MinFalsePositive to 1/2.
	FalsePositive float64

	// Seed of the hashes. Fields with different seeds err on different keys.
	Seed uint64

	// Workers is how many goroutines build at once, as in bfield.Config.
	Workers int
}

// Field is a chain of B-fields. Any number of goroutines may look up at once.
type Field struct {
	order  []uint64 // the values, the most frequent first
	layers []layer
	fields []*bfield.Field // one a layer; all are repaired
}

// Build returns a field that holds key i with values[i]. A key twice with one value
// is fine; with two values it is bfield.ErrContradiction. Too many values for the
// B-field, some 395,000 that are alike frequent, are bfield.ErrConfig.
func Build(c Config, keys keyed.List, values []uint64) (*Field, error) {
	if keys.Len() != len(values) {
		return nil, fmt.Errorf("nested: %d keys with %d values: %w", keys.Len(), len(values), bfield.ErrConfig)
	}
	if !(c.FalsePositive >= bfield.MinFalsePositive && c.FalsePositive <= mostAlpha) {
		return nil, fmt.Errorf("nested: a false positive rate of %g: from %.2g to %g: %w", c.FalsePositive, bfield.MinFalsePositive, mostAlpha, bfield.ErrConfig)
	}
	f := &Field{}
	if len(values) == 0 {
		return f, nil
	}
	order, counts := ranked(values)
	f.order, f.layers = order, plan(counts, c.FalsePositive)
	ranks := make(map[uint64]uint64, len(order))
	for i, v := range order {
		ranks[v] = uint64(i)
	}
	left := make([]uint64, len(values))
	for i, v := range values {
		left[i] = ranks[v]
	}
	for i, l := range f.layers {
		// Another seed a layer: keys that meet in one must not meet in the next.
		field, err := bfield.Build(bfield.Config{
			Keys: l.keys, Values: l.codes(), FalsePositive: l.alpha,
			Seed: c.Seed + uint64(i)*seedStep, Workers: c.Workers,
		}, keys, capped(left, uint64(l.frequent)))
		if err != nil {
			return nil, fmt.Errorf("nested: layer %d: %w", i, err)
		}
		f.fields = append(f.fields, field)
		keys, left = beyond(keys, left, uint64(l.frequent))
	}
	return f, nil
}

// seedStep is 2^64/φ, an odd number without a pattern.
const seedStep = 0x9e3779b97f4a7c15

// capped returns the ranks, those from the escape on as the escape.
func capped(ranks []uint64, escape uint64) []uint64 {
	values := make([]uint64, len(ranks))
	for i, r := range ranks {
		values[i] = min(r, escape)
	}
	return values
}

// beyond returns the keys of ranks from first on, with these ranks counted from there.
func beyond(keys keyed.List, ranks []uint64, first uint64) (rest keyed.List, left []uint64) {
	for _, r := range ranks {
		if r >= first {
			left = append(left, r-first)
		}
	}
	return keys.Choose(func(i int) bool { return ranks[i] >= first }), left
}

// Lookup returns the value of a key, and whether the key is there. At the rate α a
// stranger looks as if it were.
func (f *Field) Lookup(key keyed.Key) (value uint64, ok bool) { return f.lookup(key, 0) }

// lookup asks the fields from a layer on.
func (f *Field) lookup(key keyed.Key, from int) (value uint64, ok bool) {
	for i := from; i < len(f.fields); i++ {
		v, answer := f.fields[i].Lookup(key)
		if answer != bfield.Found {
			return 0, false
		}
		if l := &f.layers[i]; v < uint64(l.frequent) {
			return f.order[l.first+int(v)], true
		}
	}
	return 0, false
}

// batch is how many keys the first field is asked for at a time.
const batch = 256

// LookupBatch sets values[i] and found[i] to Lookup of key i. It panics if one of them is
// shorter than keys. The first field is asked for many keys at once. The next ones, which
// hold the rare values, are asked for one key at a time.
func (f *Field) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	n := keys.Len()
	values, found = values[:n], found[:n]
	if len(f.fields) == 0 {
		clear(values)
		clear(found)
		return
	}
	var answers [batch]bfield.Answer
	frequent := uint64(f.layers[0].frequent)
	for from := 0; from < n; from += batch {
		end := min(from+batch, n)
		f.fields[0].LookupBatch(keys.Slice(from, end), values[from:end], answers[:end-from])
		for i := from; i < end; i++ {
			switch found[i] = answers[i-from] == bfield.Found; {
			case !found[i]:
				values[i] = 0
			case values[i] < frequent:
				values[i] = f.order[values[i]]
			default:
				values[i], found[i] = f.lookup(keys.At(i), 1)
			}
		}
	}
}

// Stats are counts of a field.
type Stats struct {
	Keys   int
	Layers int
	Bits   uint64 // of all fields, and 64 for each value
	// FalsePositive is α by the plans of the fields.
	FalsePositive float64
}

// Stats returns the field's counts.
func (f *Field) Stats() Stats {
	s := Stats{Layers: len(f.layers), Bits: 64 * uint64(len(f.order))}
	// From the last layer on: of what a layer takes for a key, one code of all leads on.
	for i := len(f.layers) - 1; i >= 0; i-- {
		l, own := f.layers[i], f.fields[i].Plan().FalsePositive()
		if l.last {
			s.FalsePositive = own
		} else {
			s.FalsePositive = own * (float64(l.frequent) + s.FalsePositive) / float64(l.codes())
		}
		s.Bits += f.fields[i].Stats().Bits
	}
	if len(f.layers) > 0 {
		s.Keys = int(f.layers[0].keys)
	}
	return s
}
