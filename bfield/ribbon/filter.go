package ribbon

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// Kind is a way to make a filter from a ribbon.
type Kind uint8

const (
	// Standard asks that the row of each key give its fingerprint. It has enough
	// slots that all equations of a shard have a solution with one of some salts:
	// 8 % more than keys. The fastest to build.
	Standard Kind = iota

	// Bumped is a Standard one that bumps. It is the smallest, by 7 %, and takes half
	// as much time again to build. One look-up in sixteen goes on to a second level.
	Bumped

	kinds = iota
)

func (k Kind) String() string {
	if k < kinds {
		return [...]string{"standard", "bumped"}[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Filter tells whether a key is in the set that it was built from. The answer
// is always yes for a key of the set, and yes with probability 2^-f for
// another. It may be read by many goroutines at once.
type Filter struct {
	kind  Kind
	seed  uint64
	keys  int
	table *table
}

// BuildFilter builds a Filter of the keys, from the Filter, FingerprintBits,
// Seed and Workers of the configuration.
func BuildFilter(c Config, keys keyed.List) (*Filter, error) {
	k := keyList{keys}
	if err := c.checkFingerprint(); err != nil {
		return nil, err
	}
	if c.Filter >= kinds {
		return nil, fmt.Errorf("ribbon: no filter of kind %d: 0 to %d are possible", c.Filter, kinds-1)
	}
	f := &Filter{kind: c.Filter, keys: k.Len()}
	err := k.build(c.Seed, nil, func(seed uint64) (err error) {
		f.seed = seed
		if read := k.source(seed, nil); c.Filter == Standard {
			f.table, err = newStandard(c.FingerprintBits, f.keys, c.Workers, read)
		} else {
			f.table, err = c.table(0, c.FingerprintBits, f.keys, read)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Lookup says whether a key is in the set, or looks as if it were.
func (f *Filter) Lookup(key keyed.Key) bool {
	p, ok := f.table.find(key.Hash(f.seed))
	return ok && f.accepts(p)
}

// accepts compares all bits of the fingerprint at once. Half of all strangers
// differ in the first one, so that a stop there would be mispredicted.
func (f *Filter) accepts(p place) bool {
	bits := f.table.fingerprints
	return f.table.value(p, 0, bits) == fingerprint(p.hash, bits)
}

// LookupBatch sets found[i] to Lookup of key i, faster than one by one. It
// panics if found is shorter than keys.
func (f *Filter) LookupBatch(keys keyed.List, found []bool) {
	is := found[:keys.Len()]
	f.table.lookups(keys, f.seed, func(i int, _ uint64, p place, ok bool) {
		is[i] = ok && f.accepts(p)
	})
}

// Stats tells of keys, bits, overhead and the false positive rate of a ribbon
// that is nowhere crowded.
func (f *Filter) Stats() Stats {
	s := Stats{Keys: f.keys, FalsePositive: rate(f.keys, f.table.fingerprints)}
	s.add(f.table)
	return s.done(f.table.fingerprints)
}
