package reconcile

import (
	"fmt"
	"slices"

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
	read, err := b.read([]dbadapter.Index{i})
	if err != nil {
		return nil, err
	}
	return read[0], nil
}

// ahead reads the records under indices that will be asked for, some of them together,
// until what is kept is full: a store reads them side by side, and its disk too. At
// first it reads few, and more while they are small; at worst mostAhead of the largest
// values are in memory at once.
func (b *buckets) ahead(l *link, indices []dbadapter.Index) error {
	var todo []dbadapter.Index
	for _, i := range indices {
		if _, ok := b.kept[i]; !ok {
			todo = append(todo, i)
		}
	}
	slices.Sort(todo)
	todo = slices.Compact(todo)
	for n, largest := leastAhead, int64(1); len(todo) > 0; n = min(2*n, mostAhead) {
		if room := (cacheBytes - b.size) / (2 * largest); room < leastAhead {
			return nil
		} else if int64(n) > room {
			n = int(room)
		}
		some := todo[:min(n, len(todo))]
		todo = todo[len(some):]
		read, err := b.read(some)
		if err != nil {
			return err
		}
		for _, records := range read {
			largest = max(largest, bytesOf(records))
		}
		if err := l.tick(); err != nil {
			return err
		}
	}
	return nil
}

// read reads the records under indices, and keeps them while there is room.
func (b *buckets) read(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	read, err := b.stored.Buckets(indices)
	if err != nil {
		return nil, fmt.Errorf("reading the records to compare: %w", err)
	}
	for n, records := range read {
		if size := bytesOf(records); b.size+size <= cacheBytes {
			if b.kept == nil {
				b.kept = map[dbadapter.Index][]dbadapter.Hashed{}
			}
			b.kept[indices[n]], b.size = records, b.size+size
		}
	}
	return read, nil
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
