package ribbon

import "github.com/syncd-io/syncd/bfield/keyed"

// Retrieval is a static function. It returns the value of each key that it was
// built from, and an arbitrary value for any other key. It does not know which
// is which. It may be read by many goroutines at once.
type Retrieval struct{ tables }

// BuildRetrieval builds a Retrieval with values[i] for key i, from the
// ValueBits, Seed and Workers of the configuration. One key may be given more
// than once, if its value is the same each time. Otherwise the error wraps
// ErrContradiction.
func BuildRetrieval(c Config, keys keyed.List, values []uint64) (*Retrieval, error) {
	if err := c.checkValues(keys.Len(), values); err != nil {
		return nil, err
	}
	c.FingerprintBits = 0
	t, err := c.tables(keyList{keys}, values)
	if err != nil {
		return nil, err
	}
	return &Retrieval{t}, nil
}

// Lookup returns the value of a key.
func (r *Retrieval) Lookup(key keyed.Key) uint64 {
	p, ok := r.main.find(key.Hash(r.seed))
	if !ok {
		return 0
	}
	return r.main.value(p, 0, r.main.values)
}

// LookupBatch sets values[i] to the value of key i. It waits for the memory
// of many keys at once, so it is faster than Lookup for each. It panics if
// values is shorter than keys.
func (r *Retrieval) LookupBatch(keys keyed.List, values []uint64) {
	v := values[:keys.Len()]
	r.main.lookups(keys, r.seed, func(i int, _ uint64, p place, ok bool) {
		v[i] = 0
		if ok {
			v[i] = r.main.value(p, 0, r.main.values)
		}
	})
}

// Stats tells of keys, bits and overhead.
func (r *Retrieval) Stats() Stats { return r.stats() }

// ValueBits is the width of the values.
func (r *Retrieval) ValueBits() int { return r.main.values }
