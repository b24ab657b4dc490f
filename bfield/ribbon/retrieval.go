package ribbon

import "github.com/syncd-io/syncd/bfield/internal/keyed"

// Retrieval is a static function: it returns the value of each key that it was
// built from, and an arbitrary value for any other key. It does not know which
// is which. It may be read by many goroutines at once.
type Retrieval struct {
	seed  uint64
	keys  int
	table *table
}

// BuildRetrieval builds a Retrieval with values[i] for keys[i], from the
// ValueBits, Seed and Workers of the configuration. One key may be given more
// than once, if its value is the same each time; otherwise the error wraps
// ErrContradiction.
func BuildRetrieval(c Config, of [][]byte, values []uint64) (*Retrieval, error) {
	return buildRetrieval(c, bytesOf(of), values)
}

// BuildRetrievalHashes is BuildRetrieval for keys that are 64-bit numbers.
func BuildRetrievalHashes(c Config, hashes, values []uint64) (*Retrieval, error) {
	return buildRetrieval(c, numbersOf(hashes), values)
}

func buildRetrieval(c Config, k keyList, values []uint64) (*Retrieval, error) {
	if err := c.checkValues(k.Len(), values); err != nil {
		return nil, err
	}
	r := &Retrieval{keys: k.Len()}
	err := k.build(c.Seed, values, func(seed uint64) (err error) {
		r.seed = seed
		r.table, err = c.table(c.ValueBits, 0, r.keys, k.source(seed, values))
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Lookup returns the value of a key.
func (r *Retrieval) Lookup(key []byte) uint64 { return r.lookup(keyed.Bytes(key, r.seed)) }

// LookupHash is Lookup for a key that is a 64-bit number.
func (r *Retrieval) LookupHash(hash uint64) uint64 { return r.lookup(keyed.Uint64(hash, r.seed)) }

func (r *Retrieval) lookup(h uint64) uint64 {
	p, ok := r.table.find(h)
	if !ok {
		return 0
	}
	return r.table.value(p, 0, r.table.values)
}

// LookupBatch sets values[i] to the value of keys[i]. It waits for the memory
// of many keys at once, so it is faster than Lookup for each. It panics if
// values is shorter than keys.
func (r *Retrieval) LookupBatch(keys [][]byte, values []uint64) {
	r.lookups(bytesOf(keys), values[:len(keys)])
}

// LookupHashes is LookupBatch for keys that are 64-bit numbers.
func (r *Retrieval) LookupHashes(hashes, values []uint64) {
	r.lookups(numbersOf(hashes), values[:len(hashes)])
}

func (r *Retrieval) lookups(k keyList, values []uint64) {
	r.table.lookups(k, r.seed, func(i int, _ uint64, p place, ok bool) {
		values[i] = 0
		if ok {
			values[i] = r.table.value(p, 0, r.table.values)
		}
	})
}

// Stats tells of keys, bits and overhead.
func (r *Retrieval) Stats() Stats {
	s := Stats{Keys: r.keys, FalsePositive: 1}
	s.add(r.table)
	return s.done(r.table.values)
}

// ValueBits is the width of the values.
func (r *Retrieval) ValueBits() int { return r.table.values }
