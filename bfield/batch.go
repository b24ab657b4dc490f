package bfield

import "github.com/syncd-io/syncd/bfield/keyed"

// group is how many keys a batch asks for side by side. The loads of one key
// must wait for nothing, so the processor fetches those of many at once.
const group = 32

// LookupBatch sets values[i] and answers[i] to what Lookup of key i returns.
// It panics if one of them is shorter than keys.
func (f *Field) LookupBatch(keys keyed.List, values []uint64, answers []Answer) {
	n := keys.Len()
	values, answers = values[:n], answers[:n]
	a, p := &f.levels[0], &f.plan
	var asked [group]key
	var acc [group]uint64
	for from := 0; from < n; from += group {
		m := min(group, n-from)
		for i := range m {
			asked[i] = f.keyOf(keys.At(from + i))
		}
		for i, k := range asked[:m] {
			acc[i] = and(f.mask(), a.bytes, a.places, k, multipliers[:p.unasked])
		}
		for i, k := range asked[:m] {
			w := acc[i]
			if !fewer(w, p.Kappa) {
				w = and(w, a.bytes, a.places, k, multipliers[p.unasked:p.Hashes])
			}
			values[from+i], answers[from+i] = f.judge(k, w)
		}
	}
}
