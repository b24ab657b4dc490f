package ribbon

import (
	"fmt"
	"math"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// tables are what a Retrieval, a Map and a Filter consist of. A key's entry is its
// fingerprint and behind it its value; either may have no bits. A word has 64 bits.
// What does not fit, the highest bits of wide values, is a table of its own.
type tables struct {
	seed uint64
	keys int
	main *table // fingerprints, and the low bits of the values
	high *table // the rest of the values; nil if main holds all of their bits
}

// lowBits is how many bits of the values fit in a word with the fingerprint.
func lowBits(values, fingerprints int) int { return min(values, 64-fingerprints) }

// tables builds those of some keys with values[i] for key i; nil stands for no values.
func (c *Config) tables(k keyList, values []uint64) (tables, error) {
	t := tables{keys: k.Len()}
	low := lowBits(c.ValueBits, c.FingerprintBits)
	err := k.build(c.Seed, values, func(seed uint64) (err error) {
		t.seed = seed
		read := k.source(seed, values)
		t.main, err = c.table(low, c.FingerprintBits, t.keys, read.bits(0, low))
		if err == nil && low < c.ValueBits {
			t.high, err = c.table(c.ValueBits-low, 0, t.keys, read.bits(low, c.ValueBits-low))
		}
		return err
	})
	return t, err
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

// accepts compares all bits of the fingerprint at once. Half of all strangers
// differ in the first one, so that a stop there would be mispredicted.
func (t *tables) accepts(p place) bool {
	bits := t.main.fingerprints
	return t.main.value(p, 0, bits) == fingerprint(p.hash, bits)
}

// value is that of a place, which the hash h has.
func (t *tables) value(p place, h uint64) uint64 {
	v := t.main.value(p, t.main.fingerprints, t.main.width())
	if t.high != nil {
		// Both tables hold the same keys, so neither is empty alone.
		q, _ := t.high.find(h)
		v |= t.high.value(q, 0, t.high.values) << t.main.values
	}
	return v
}

func (t *tables) stats() Stats {
	s := Stats{Keys: t.keys, FalsePositive: math.Ldexp(1, -t.main.fingerprints)}
	if t.keys == 0 && t.main.fingerprints > 0 {
		s.FalsePositive = 0 // nothing is found
	}
	width := t.main.width()
	s.add(t.main)
	if t.high != nil {
		s.add(t.high)
		width += t.high.values
	}
	if t.keys > 0 {
		s.Overhead = float64(s.Bits)/float64(width)/float64(t.keys) - 1
	}
	return s
}

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
