package ribbon

import "math"

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
