package badgerkv

import (
	"bytes"
	"context"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Stale estimates how much of what the tables, and the log of the table in memory,
// take is stale.
func (d *db) Stale(ctx context.Context, c kv.Commits) (stale, size int64, err error) {
	size = d.Size()
	inLogs, err := logged(d.dir)
	if err != nil {
		return 0, 0, err
	}
	size += inLogs
	share, err := d.staleShare(ctx, c)
	return int64(share * float64(size)), size, err
}

// The estimate reads that many samples of that many bytes, or all of a store that
// has no more.
const (
	samples    = 64
	sampleSize = 1 << 20
	pauseAfter = 256 // entries
)

// staleShare estimates which part of the store's bytes is stale: versions that were
// overwritten, removed entries, and the marks of their removal. It reads samples of
// all versions that Badger holds.
func (d *db) staleShare(ctx context.Context, c kv.Commits) (_ float64, err error) {
	defer d.recovered(&err)
	txn := newest(d.badger)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.PrefetchValues, o.AllVersions = false, true
	it := txn.NewIterator(o)
	defer it.Close()
	var stale, all int64
	starts := sampleStarts(d.badger.Tables())
	for _, start := range starts {
		whole := start == nil
		var last []byte
		size := int64(0)
		it.Seek(start)
		for n := 0; it.Valid() && (whole || size < sampleSize); n++ {
			if n%pauseAfter == 0 {
				c.Pause(ctx)
				if err := ctx.Err(); err != nil {
					return 0, err
				}
			}
			item := it.Item()
			one := item.EstimatedSize()
			if item.IsDeletedOrExpired() || n > 0 && bytes.Equal(item.Key(), last) {
				stale += one
			}
			last = item.KeyCopy(last)
			size += one
			it.Next()
		}
		all += size
	}
	return float64(stale) / float64(max(all, 1)), nil
}

// sampleStarts are where samples begin: at the first keys of tables, so that each byte
// of the tables stands for as many samples as any other. The nil key alone: read all.
func sampleStarts(tables []badger.TableInfo) (starts [][]byte) {
	const version = 8 // bytes at the end of Badger's keys
	var size int64
	// Those of the first level are few, and each holds keys of all parts.
	tables = slices.DeleteFunc(tables, func(t badger.TableInfo) bool { return t.Level == 0 })
	for _, t := range tables {
		size += int64(t.OnDiskSize)
	}
	if size <= samples*sampleSize {
		return [][]byte{nil}
	}
	slices.SortFunc(tables, func(a, b badger.TableInfo) int { return bytes.Compare(a.Left, b.Left) })
	var passed int64
	for _, t := range tables {
		passed += int64(t.OnDiskSize)
		for int64(len(starts)) < samples && int64(2*len(starts)+1)*size < 2*samples*passed {
			starts = append(starts, t.Left[:len(t.Left)-version])
		}
	}
	return starts
}
