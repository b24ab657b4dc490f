package node

import (
	"bytes"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// lookedUp is how many keys are looked up together. What they hold may be as many
// of the largest values, which are in memory at once.
const lookedUp = 128

// holdings reads what a snapshot holds under keys, some at a time. It reads the
// buckets, and not the records. The commit has to know, too, what is there, or that
// there is nothing, and need not read it again.
type holdings struct {
	snap    dbadapter.Snapshot
	keys    int
	key     func(i int) []byte
	index   func(i int) dbadapter.Index // of the key
	read    int                         // of the keys
	indices []dbadapter.Index
	buckets map[dbadapter.Index][]dbadapter.Hashed // of the last lookedUp keys; only what is not empty
}

// under is the record held under the i-th key, or nil. The keys are asked for in their
// order.
func (h *holdings) under(i int) (*dbadapter.Record, error) {
	if i == h.read {
		if err := h.next(); err != nil {
			return nil, err
		}
	}
	if len(h.buckets) == 0 {
		return nil, nil
	}
	bucket := h.buckets[h.index(i)]
	for n := range bucket {
		if bytes.Equal(bucket[n].Key, h.key(i)) {
			return &bucket[n].Record, nil
		}
	}
	return nil, nil
}

// next reads the buckets of the next keys, all at once.
func (h *holdings) next() error {
	h.indices = h.indices[:0]
	for ; h.read < h.keys && len(h.indices) < lookedUp; h.read++ {
		h.indices = append(h.indices, h.index(h.read))
	}
	slices.Sort(h.indices)
	h.indices = slices.Compact(h.indices)
	held, err := h.snap.Buckets(h.indices)
	if err != nil {
		return err
	}
	h.buckets = nil
	for i, index := range h.indices {
		if len(held[i]) > 0 {
			if h.buckets == nil {
				h.buckets = map[dbadapter.Index][]dbadapter.Hashed{}
			}
			h.buckets[index] = held[i]
		}
	}
	return nil
}
