package pebblekv

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// loader commits batches without waiting for the disk, and waits in Flush: the log
// of all of them is one, in order.
type loader struct {
	db    *db
	batch *pebble.Batch
}

// loadBytes is when a batch of a loader is committed.
const loadBytes = 1 << 20

func (l *loader) Set(key, value []byte) error {
	return errors.Join(l.batch.Set(key, value, nil), l.full())
}

func (l *loader) Delete(key []byte) error {
	return errors.Join(l.batch.Delete(key, nil), l.full())
}

func (l *loader) full() error {
	if l.batch.Len() < loadBytes {
		return nil
	}
	return l.commit(pebble.NoSync)
}

func (l *loader) commit(o *pebble.WriteOptions) error {
	err := l.db.commit(func() error { return l.batch.Commit(o) })
	_ = l.batch.Close()
	l.batch = l.db.pebble.NewBatch()
	return err
}

// Flush commits an entry of no effect, if there is nothing else: an empty batch
// would not wait for those before it.
func (l *loader) Flush() error {
	if err := l.batch.LogData(nil, nil); err != nil {
		return err
	}
	return l.commit(l.db.write)
}

func (l *loader) Cancel() { _ = l.batch.Close() }
