package reconcile

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// buckets reads this side's records under an index, and keeps what it read
// while that is little: the residual needs them first, the peer next. What has been used
// for the last time makes room for what comes.
type buckets struct {
	stored Replica
	kept   map[dbadapter.Index][]dbadapter.Hashed
	size   int64
	atOnce int // how many were read together last; 0 at first
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

// done says that the records under an index will hardly be asked for again.
func (b *buckets) done(i dbadapter.Index) {
	if records, ok := b.kept[i]; ok {
		b.size -= bytesOf(records)
		delete(b.kept, i)
	}
}

// each calls fn with the place of each of the indices, and with the records under it,
// which must not be changed. It reads some together: a store reads them side by side, and
// its disk too.
func (b *buckets) each(l *link, indices []dbadapter.Index, fn func(n int, records []dbadapter.Hashed) error) error {
	var ahead map[dbadapter.Index][]dbadapter.Hashed
	for n, i := range indices {
		records, ok := b.kept[i]
		if !ok {
			records, ok = ahead[i]
		}
		if !ok {
			clear(ahead) // before others are read
			var err error
			if ahead, err = b.ahead(indices[n:]); err != nil {
				return err
			}
			if err := l.tick(); err != nil {
				return err
			}
			records = ahead[i]
		}
		if err := fn(n, records); err != nil {
			return err
		}
	}
	return nil
}

// ahead reads what is not kept of the records under the first of some indices. At first it
// reads few, and more while they are small; at worst mostAhead of the largest values are
// in memory at once.
func (b *buckets) ahead(indices []dbadapter.Index) (map[dbadapter.Index][]dbadapter.Hashed, error) {
	if b.atOnce = min(2*b.atOnce, mostAhead); b.atOnce == 0 {
		b.atOnce = leastAhead
	}
	var some []dbadapter.Index
	for _, i := range indices[:min(2*b.atOnce, len(indices))] {
		if _, ok := b.kept[i]; !ok && len(some) < b.atOnce {
			some = append(some, i)
		}
	}
	slices.Sort(some)
	some = slices.Compact(some)
	read, err := b.read(some)
	if err != nil {
		return nil, err
	}
	ahead, largest := make(map[dbadapter.Index][]dbadapter.Hashed, len(some)), int64(1)
	for n, records := range read {
		ahead[some[n]] = records
		largest = max(largest, bytesOf(records))
	}
	b.atOnce = int(min(int64(b.atOnce), max(1, aheadBytes/largest)))
	return ahead, nil
}

// read reads the records under indices, and keeps them while there is room.
func (b *buckets) read(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	read, err := b.stored.Buckets(indices)
	if err != nil {
		return nil, fmt.Errorf("reading the records to compare: %w", err)
	}
	for n, records := range read {
		if size := bytesOf(records); b.size+size <= cacheBytes-aheadBytes {
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
