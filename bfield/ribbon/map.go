package ribbon

import (
	"math"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// Map is an approximate static map: it returns the value of each key that it
// was built from. For any other key it says "absent", except with probability
// 2^-f, when it returns an arbitrary value. It may be read by many goroutines
// at once.
//
// A key's entry is its fingerprint and behind it its value. A word has 64 bits.
// What does not fit, the highest bits of wide values, is a table of its own.
type Map struct {
	seed uint64
	keys int
	main *table // fingerprints, and the low bits of the values
	high *table // the rest of the values; nil if main holds all of their bits
}

// lowBits is how many bits of the values fit in a word with the fingerprint.
func lowBits(values, fingerprints int) int { return min(values, 64-fingerprints) }

// BuildMap builds a Map with values[i] for key i, from the ValueBits,
// FingerprintBits, Seed and Workers of the configuration. One key may be given
// more than once, if its value is the same each time. Otherwise the error wraps
// ErrContradiction.
func BuildMap(c Config, keys keyed.List, values []uint64) (*Map, error) {
	k := keyList{keys}
	if err := c.checkValues(k.Len(), values); err != nil {
		return nil, err
	}
	if err := c.checkFingerprint(); err != nil {
		return nil, err
	}
	var m *Map
	err := k.build(c.Seed, values, func(seed uint64) (err error) {
		m, err = tablesOf(c, seed, k.Len(), k.source(seed, values))
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// tablesOf builds a Map of the n keys of a source, which are hashed under seed.
func tablesOf(c Config, seed uint64, n int, read source) (*Map, error) {
	m := &Map{seed: seed, keys: n}
	low := lowBits(c.ValueBits, c.FingerprintBits)
	var err error
	m.main, err = c.table(low, c.FingerprintBits, n, read.bits(0, low))
	if err == nil && low < c.ValueBits {
		m.high, err = c.table(c.ValueBits-low, 0, n, read.bits(low, c.ValueBits-low))
	}
	return m, err
}

// bits gives, of each value, n bits from bit from on.
func (read source) bits(from, n int) source {
	return func(into []entry, first int) {
		read(into, first)
		for i := range into {
			into[i].value = into[i].value >> from & (1<<n - 1)
		}
	}
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

func (m *Map) accepts(p place) bool {
	bits := m.main.fingerprints
	return m.main.value(p, 0, bits) == fingerprint(p.hash, bits)
}

func (m *Map) value(p place, h uint64) uint64 {
	v := m.main.value(p, m.main.fingerprints, m.main.width())
	if m.high != nil {
		// Both tables hold the same keys, so neither is empty alone.
		q, _ := m.high.find(h)
		v |= m.high.value(q, 0, m.high.values) << m.main.values
	}
	return v
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
func (m *Map) Stats() Stats {
	s := Stats{Keys: m.keys, FalsePositive: rate(m.keys, m.main.fingerprints)}
	width := m.main.width()
	s.add(m.main)
	if m.high != nil {
		s.add(m.high)
		width += m.high.values
	}
	return s.done(width)
}

// rate is the probability that a stranger's fingerprint agrees.
func rate(keys, fingerprints int) float64 {
	if keys == 0 {
		return 0
	}
	return math.Ldexp(1, -fingerprints)
}
