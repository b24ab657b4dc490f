package ribbon

import "github.com/syncd-io/syncd/bfield/internal/keyed"

// batch is how many keys a batched look-up works on at once. Each waits for up
// to five cache lines, of which a core fetches some tens at a time; more keys
// than that gain nothing, and 32 places fit in the first-level cache.
const batch = 32

// batches calls do for each run of up to batch of n keys, with memory for their
// hashes.
func batches(n int, do func(from, to int, h *[batch]uint64)) {
	var h [batch]uint64
	for from := 0; from < n; from += batch {
		do(from, min(n, from+batch), &h)
	}
}

func hashBytes(h *[batch]uint64, keys [][]byte, seed uint64) {
	for i, k := range keys {
		h[i&(batch-1)] = keyed.Bytes(k, seed)
	}
}

func hashNumbers(h *[batch]uint64, numbers []uint64, seed uint64) {
	for i, n := range numbers {
		h[i&(batch-1)] = keyed.Uint64(n, seed)
	}
}

// findAll finds the places of up to batch hashes, and has all of their memory
// fetched while none of it is needed yet. It returns false if the table is
// empty.
func (t *table) findAll(places []place, h *[batch]uint64) bool {
	if len(t.levels) == 0 {
		return false
	}
	for i := range places {
		places[i], _ = t.find(h[i&(batch-1)])
	}
	fetch(places)
	return true
}
