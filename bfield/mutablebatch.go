package bfield

import (
	"fmt"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// InsertBatch inserts many keys with one append to the log. Look-ups may see the
// first of them before the others.
func (m *Mutable) InsertBatch(keys keyed.List, values []uint64) error {
	return m.writeBatch(Inserted, keys, values)
}

// ChangeBatch gives many inserted keys other values, with one append to the log.
func (m *Mutable) ChangeBatch(keys keyed.List, values []uint64) error {
	return m.writeBatch(Changed, keys, values)
}

// RemoveBatch takes many keys out, with one append to the log.
func (m *Mutable) RemoveBatch(keys keyed.List) error {
	return m.writeBatch(Removed, keys, make([]uint64, keys.Len()))
}

func (m *Mutable) writeBatch(op Op, keys keyed.List, values []uint64) error {
	if keys.Len() != len(values) {
		return fmt.Errorf("write %d keys with %d values: %w", keys.Len(), len(values), ErrConfig)
	}
	records := make([]Record, len(values))
	for i := range records {
		records[i] = record(op, m.keyOf(keys.At(i)), values[i])
	}
	return m.write(records)
}
