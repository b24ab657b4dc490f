package bfield

// group is how many keys a batch asks for side by side. The loads of one key
// must wait for nothing, so the processor fetches those of many at once.
const group = 32

// LookupBatch sets values[i] and answers[i] to what Lookup(keys[i]) returns.
// Both must be as long as keys.
func (f *Field) LookupBatch(keys [][]byte, values []uint64, answers []Answer) {
	values, answers = values[:len(keys)], answers[:len(keys)]
	var asked [group]key
	for from := 0; from < len(keys); from += group {
		end := min(from+group, len(keys))
		for i := from; i < end; i++ {
			asked[i-from] = f.keyOf(keys[i])
		}
		f.lookupGroup(asked[:end-from], values[from:end], answers[from:end])
	}
}

// LookupHashes is LookupBatch for keys that are numbers.
func (f *Field) LookupHashes(keys, values []uint64, answers []Answer) {
	values, answers = values[:len(keys)], answers[:len(keys)]
	var asked [group]key
	for from := 0; from < len(keys); from += group {
		end := min(from+group, len(keys))
		for i := from; i < end; i++ {
			asked[i-from] = f.keyOfHash(keys[i])
		}
		f.lookupGroup(asked[:end-from], values[from:end], answers[from:end])
	}
}

func (f *Field) lookupGroup(keys []key, values []uint64, answers []Answer) {
	a, p := &f.levels[0], &f.plan
	var acc [group]uint64
	for i, k := range keys {
		acc[i] = and(f.mask(), a.bytes, a.places, k, multipliers[:p.unasked])
	}
	for i, k := range keys {
		w := acc[i]
		if !fewer(w, p.Kappa) {
			w = and(w, a.bytes, a.places, k, multipliers[p.unasked:p.Hashes])
		}
		values[i], answers[i] = f.judge(k, w)
	}
}
