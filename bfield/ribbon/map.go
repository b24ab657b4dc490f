package ribbon

import "github.com/syncd-io/syncd/bfield/keyed"

// Map is an approximate static map: it returns the value of each key that it
// was built from. For any other key it says "absent", except with probability
// 2^-f, when it returns an arbitrary value. It may be read by many goroutines
// at once.
type Map struct{ tables }

// BuildMap builds a Map with values[i] for key i, from the ValueBits,
// FingerprintBits, Seed and Workers of the configuration. One key may be given
// more than once, if its value is the same each time. Otherwise the error wraps
// ErrContradiction.
func BuildMap(c Config, keys keyed.List, values []uint64) (*Map, error) {
	if err := c.checkValues(keys.Len(), values); err != nil {
		return nil, err
	}
	if err := c.checkFingerprint(); err != nil {
		return nil, err
	}
	t, err := c.tables(keyList{keys}, values)
	if err != nil {
		return nil, err
	}
	return &Map{t}, nil
}

// Lookup returns the value of a key, and whether the key is there or looks as
// if it were.
func (m *Map) Lookup(key keyed.Key) (value uint64, ok bool) {
	h := key.Hash(m.seed)
	p, ok := m.main.find(h)
	if !ok || !m.accepts(p) {
		return 0, false
	}
	return m.value(p, h), true
}

// LookupBatch sets values[i] and found[i] to Lookup of key i, faster than one
// by one. Where found[i] is false, values[i] is 0. It panics if values or found
// is shorter than keys.
func (m *Map) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	v, is := values[:keys.Len()], found[:keys.Len()]
	m.main.lookups(keys, m.seed, func(i int, h uint64, p place, ok bool) {
		v[i], is[i] = 0, ok && m.accepts(p)
		if is[i] {
			v[i] = m.value(p, h)
		}
	})
}

// Stats tells of keys, bits, overhead and the false positive rate.
func (m *Map) Stats() Stats { return m.stats() }
