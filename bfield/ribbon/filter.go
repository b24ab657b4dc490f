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
	kind Kind
	tables
}

// BuildFilter builds a Filter of the keys, from the Filter, FingerprintBits,
// Seed and Workers of the configuration.
func BuildFilter(c Config, keys keyed.List) (*Filter, error) {
	if err := c.checkFingerprint(); err != nil {
		return nil, err
	}
	if c.Filter >= kinds {
		return nil, fmt.Errorf("ribbon: no filter of kind %d: 0 to %d are possible", c.Filter, kinds-1)
	}
	c.ValueBits = 0
	t, err := c.tables(keyList{keys}, nil)
	if err != nil {
		return nil, err
	}
	return &Filter{c.Filter, t}, nil
}

// Lookup says whether a key is in the set, or looks as if it were.
func (f *Filter) Lookup(key keyed.Key) bool {
	p, ok := f.main.find(key.Hash(f.seed))
	return ok && f.accepts(p)
}

// LookupBatch sets found[i] to Lookup of key i, faster than one by one. It
// panics if found is shorter than keys.
func (f *Filter) LookupBatch(keys keyed.List, found []bool) {
	is := found[:keys.Len()]
	f.main.lookups(keys, f.seed, func(i int, _ uint64, p place, ok bool) {
		is[i] = ok && f.accepts(p)
	})
}

// Stats tells of keys, bits, overhead and the false positive rate of a ribbon
// that is nowhere crowded.
func (f *Filter) Stats() Stats { return f.stats() }
