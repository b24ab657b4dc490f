package bloom

import "github.com/syncd-io/syncd/bfield/keyed"

// LookupBatch sets found[i] to Lookup of key i. In a Classic filter larger than the cache
// that is faster than one by one; a Blocked one gains nothing. It panics if found is shorter
// than keys.
func (f *Filter) LookupBatch(keys keyed.List, found []bool) {
	found = found[:keys.Len()]
	if f.kind == Blocked {
		// Without a branch on what a block holds, the processor is many keys ahead of
		// the memory by itself.
		for i := range found {
			h := keys.At(i).Hash(f.seed)
			found[i] = inBlock(f.block(h), h, f.hashes)
		}
		return
	}
	for from := 0; from < len(found); from += batch {
		f.lookupPlaces(keys, from, found[from:min(from+batch, len(found))])
	}
}

// batch is how many keys a look-up in a Classic filter works on at once.
const batch = 32

// lookupPlaces looks at one bit of each key, then at another of those that are left. The
// loads of a round wait for memory at the same time, and no branch is mispredicted.
func (f *Filter) lookupPlaces(keys keyed.List, from int, found []bool) {
	clear(found)
	var at [batch]places
	var left [batch]uint8
	for i := range found {
		at[i] = placesOf(keys.At(from + i).Hash(f.seed))
		left[i] = uint8(i)
	}
	n := len(found)
	for range f.hashes {
		kept := 0
		for _, i := range left[:n] {
			p := f.place(&at[i%batch])
			left[kept] = i
			kept += int(f.words[p>>6] >> (p & 63) & 1)
		}
		n = kept
	}
	for _, i := range left[:n] {
		found[i] = true
	}
}
