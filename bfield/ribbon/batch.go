package ribbon

import "github.com/syncd-io/syncd/bfield/keyed"

// batch is how many keys a batched look-up works on at once. Each waits for up
// to five cache lines, of which a core fetches some tens at a time. More keys
// than that gain nothing, and 32 places fit in the first-level cache.
const batch = 32

// pending are keys of a batch whose memory is on its way.
type pending struct {
	hashes [batch]uint64
	places [batch]place
}

// lookups looks keys up. answer is called for each, with its hash and its place.
// ok is false if the table is empty. While the memory of a batch is on its way,
// the batch before it is answered. Places are handed on by value, so that they
// stay on the stack.
func (t *table) lookups(k keyed.List, seed uint64, answer func(i int, h uint64, p place, ok bool)) {
	n := k.Len()
	if len(t.levels) == 0 {
		for i := range n {
			answer(i, 0, place{}, false)
		}
		return
	}
	var two [2]pending
	var addresses [batch]*uint64
	for from := 0; from < n+batch; from += batch {
		if from < n {
			next := &two[from/batch%2]
			m := min(batch, n-from)
			for i := range m {
				h := k.At(from + i).Hash(seed)
				next.hashes[i] = h
				p, _ := t.find(h)
				next.places[i] = p
				addresses[i] = &t.blocks(p)[0]
			}
			fetch(&addresses, m, 2*t.width())
		}
		if from > 0 {
			last := &two[(from/batch+1)%2]
			for i := range min(batch, n-from+batch) {
				answer(from-batch+i, last.hashes[i], last.places[i], true)
			}
		}
	}
}
