package pebblekv

import (
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// The estimate reads that many samples of that many bytes, or all of a database that
// has no more.
const (
	samples    = 64
	sampleSize = 1 << 20
	pauseAfter = 256 // entries
	// entryBytes is what a table holds of an entry beside its key and its value.
	entryBytes = 8
)

// Stale estimates which part of the tables is stale: it compares what samples of the
// keys take in the tables with the entries that a reader sees there.
func (d *db) Stale(ctx context.Context, c kv.Commits) (stale, size int64, err error) {
	defer damage.Recovered("database", &err)
	levels, err := d.pebble.SSTables()
	if err != nil {
		return 0, 0, named(err)
	}
	size = d.Size()
	bounds := [][2][]byte{{{0}, {0xff}}}
	if bottom := levels[len(levels)-1]; size > samples*sampleSize && len(bottom) >= samples {
		bounds = bounds[:0]
		for i := range samples {
			t := bottom[i*len(bottom)/samples]
			bounds = append(bounds, [2][]byte{slices.Clone(t.Smallest.UserKey), slices.Concat(t.Largest.UserKey, []byte{0})})
		}
	}
	var live, all uint64
	for _, b := range bounds {
		seen, end, err := d.live(ctx, c, b[0], b[1], len(bounds) == 1)
		if err != nil {
			return 0, 0, err
		}
		held, err := d.pebble.EstimateDiskUsage(b[0], end)
		if err != nil {
			return 0, 0, named(err)
		}
		live, all = live+seen, all+held
	}
	if all == 0 || live >= all {
		return 0, size, nil
	}
	return int64(float64(size) * float64(all-live) / float64(all)), size, nil
}

// live adds up the entries from a key on, up to another or, unless whole is set, to
// the size of a sample. It returns where it has ended.
func (d *db) live(ctx context.Context, c kv.Commits, from, to []byte, whole bool) (size uint64, end []byte, err error) {
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return 0, nil, named(err)
	}
	defer func() { _ = it.Close() }() // it repeats the error of its last move
	n := 0
	for it.First(); it.Valid(); it.Next() {
		if !whole && size >= sampleSize {
			return size, slices.Clone(it.Key()), nil
		}
		if n++; n%pauseAfter == 0 {
			c.Pause(ctx)
			if err := ctx.Err(); err != nil {
				return 0, nil, err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return 0, nil, named(err)
		}
		size += uint64(len(it.Key()) + len(value) + entryBytes)
	}
	if err := it.Error(); err != nil {
		return 0, nil, named(err)
	}
	return size, to, nil
}
