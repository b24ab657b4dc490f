package bfield

import "fmt"

// InsertBatch inserts many keys with one append to the log. Look-ups may see the
// first of them before the others.
func (m *Mutable) InsertBatch(keys [][]byte, values []uint64) error {
	return m.writeBatch(Inserted, len(keys), values, func(i int) key { return m.keyOf(keys[i]) })
}

// InsertHashes is InsertBatch for keys that are numbers.
func (m *Mutable) InsertHashes(keys, values []uint64) error {
	return m.writeBatch(Inserted, len(keys), values, func(i int) key { return m.keyOfHash(keys[i]) })
}

// ChangeBatch gives many inserted keys other values, with one append to the log.
func (m *Mutable) ChangeBatch(keys [][]byte, values []uint64) error {
	return m.writeBatch(Changed, len(keys), values, func(i int) key { return m.keyOf(keys[i]) })
}

// ChangeHashes is ChangeBatch for keys that are numbers.
func (m *Mutable) ChangeHashes(keys, values []uint64) error {
	return m.writeBatch(Changed, len(keys), values, func(i int) key { return m.keyOfHash(keys[i]) })
}

// RemoveBatch takes many keys out, with one append to the log.
func (m *Mutable) RemoveBatch(keys [][]byte) error {
	return m.writeBatch(Removed, len(keys), make([]uint64, len(keys)), func(i int) key { return m.keyOf(keys[i]) })
}

// RemoveHashes is RemoveBatch for keys that are numbers.
func (m *Mutable) RemoveHashes(keys []uint64) error {
	return m.writeBatch(Removed, len(keys), make([]uint64, len(keys)), func(i int) key { return m.keyOfHash(keys[i]) })
}

func (m *Mutable) writeBatch(op Op, n int, values []uint64, keyAt func(i int) key) error {
	if n != len(values) {
		return fmt.Errorf("write %d keys with %d values: %w", n, len(values), ErrConfig)
	}
	records := make([]Record, n)
	for i := range records {
		records[i] = record(op, keyAt(i), values[i])
	}
	return m.write(records)
}
