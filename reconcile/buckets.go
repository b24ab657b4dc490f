package reconcile

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// buckets reads this side's records under an index, and keeps what it read
// while that is little: the residual needs them first, the peer next.
type buckets struct {
	stored Stored
	kept   map[dbadapter.Index][]dbadapter.Hashed
	size   int64
}

// bucket returns the records under an index, by key. They must not be changed.
func (b *buckets) bucket(i dbadapter.Index) ([]dbadapter.Hashed, error) {
	if records, ok := b.kept[i]; ok {
		return records, nil
	}
	records, err := b.stored.Bucket(i)
	if err != nil {
		return nil, fmt.Errorf("reading the records to compare: %w", err)
	}
	size := bytesOf(records)
	if b.size+size <= cacheBytes {
		if b.kept == nil {
			b.kept = map[dbadapter.Index][]dbadapter.Hashed{}
		}
		b.kept[i], b.size = records, b.size+size
	}
	return records, nil
}

// recordSize is about what a record takes on the wire.
func recordSize(r *dbadapter.Record) int64 {
	const head = 30 // flags, lengths and version
	return int64(len(r.Key) + len(r.Value) + len(r.Signature) + r.OptionalSize() + head)
}

// bytesOf is about what a bucket takes on the wire.
func bytesOf(bucket []dbadapter.Hashed) (n int64) {
	for i := range bucket {
		n += recordSize(&bucket[i].Record)
	}
	return n
}

// sizeOf is about what records take on the wire.
func sizeOf(records []arrival) (n int64) {
	for i := range records {
		n += recordSize(&records[i].Record)
	}
	return n
}
