package cuckoo

import "github.com/syncd-io/syncd/bfield/internal/keyed"

// LookupBatch sets values[i] and found[i] for keys[i], as Lookup answers; where
// found[i] is false, values[i] is 0. It panics if values or found is shorter
// than keys. The buckets of many keys are fetched at once.
func (t *Table) LookupBatch(keys [][]byte, values []uint64, found []bool) {
	var hashes [batch]uint64
	for begin := 0; begin < len(keys); begin += batch {
		part := keys[begin:min(begin+batch, len(keys))]
		for i, k := range part {
			hashes[i&(batch-1)] = keyed.Bytes(k, t.config.Seed)
		}
		t.lookups(hashes[:len(part)], values[begin:begin+len(part)], found[begin:begin+len(part)])
	}
}

// LookupHashes is LookupBatch for keys that are 64-bit numbers.
func (t *Table) LookupHashes(keys, values []uint64, found []bool) {
	var hashes [batch]uint64
	for begin := 0; begin < len(keys); begin += batch {
		part := keys[begin:min(begin+batch, len(keys))]
		for i, k := range part {
			hashes[i&(batch-1)] = keyed.Uint64(k, t.config.Seed)
		}
		t.lookups(hashes[:len(part)], values[begin:begin+len(part)], found[begin:begin+len(part)])
	}
}

// lookups answers at most batch look-ups.
func (t *Table) lookups(hashes, values []uint64, found []bool) {
	t.touch(hashes)
	for i, h := range hashes {
		values[i], found[i] = t.lookup(h)
	}
}

// touch reads a word of each key's first bucket; see fetch.
//
//go:noinline
func (t *Table) touch(hashes []uint64) (sum uint64) {
	for _, h := range hashes {
		c, word, _ := t.bit(t.bucketOf(t.identify(h), 0), 0)
		sum += c[word]
	}
	return sum
}
