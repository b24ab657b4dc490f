package cuckoo

import "github.com/syncd-io/syncd/bfield/keyed"

// LookupBatch sets values[i] and found[i] for key i, as Lookup answers. Where
// found[i] is false, values[i] is 0. It panics if values or found is shorter
// than keys. The buckets of many keys are fetched at once.
func (t *Table) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	n := keys.Len()
	values, found = values[:n], found[:n]
	var hashes [batch]uint64
	for begin := 0; begin < n; begin += batch {
		end := min(begin+batch, n)
		for i := begin; i < end; i++ {
			hashes[i&(batch-1)] = keys.At(i).Hash(t.config.Seed)
		}
		t.lookups(hashes[:end-begin], values[begin:end], found[begin:end])
	}
}

// lookups answers at most batch look-ups.
func (t *Table) lookups(hashes, values []uint64, found []bool) {
	t.touch(hashes)
	for i, h := range hashes {
		values[i], found[i] = t.find(t.identify(h))
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
