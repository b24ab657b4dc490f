package badgerkv

import (
	"context"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Badger frees the space of what was removed when it merges the tables that hold
// it with those that hold the marks of its removal. Its own compactions follow the
// sizes of the levels, so that in a store that has become smaller nothing moves.

// fillerSize is the length of a value that fills Badger's table in memory.
const fillerSize = kv.MaxEntry / 2

// Size is that of all tables.
func (d *db) Size() (bytes int64) {
	for _, t := range d.badger.Tables() {
		bytes += int64(t.OnDiskSize)
	}
	return bytes
}

// Compact merges all tables.
func (d *db) Compact(ctx context.Context, c kv.Commits) error {
	if d.isSmall() {
		return d.mergeSmall(ctx, c)
	}
	if err := d.flush(ctx, c); err != nil {
		return err
	}
	return d.flatten(ctx, c)
}

// isSmall reports whether all tables stand in the first level: they are eight at
// most, and Badger's Flatten leaves them as they are.
func (d *db) isSmall() bool {
	return !slices.ContainsFunc(d.badger.Tables(), func(t badger.TableInfo) bool { return t.Level > 0 })
}

// mergeSmall merges the few tables of a small store, and what is in memory: Badger
// does so when it drops a prefix. Commits wait for it, a second perhaps.
func (d *db) mergeSmall(ctx context.Context, c kv.Commits) error {
	if err := c.Fill(ctx, []byte{0}); err != nil {
		return err
	}
	return c.Between(ctx, d.DropPrefix)
}

// flush brings all that has been committed from Badger's table in memory into the
// tables on disk. Badger has no call for that; a full table is flushed.
func (d *db) flush(ctx context.Context, c kv.Commits) error {
	var last uint64
	if err := c.Between(ctx, func([]byte) (err error) {
		defer d.recovered(&err)
		last = d.badger.MaxVersion()
		return nil
	}); err != nil {
		return err
	}
	before, err := logsIn(d.dir)
	if err != nil {
		return err
	}
	filler := make([]byte, fillerSize)
	for range d.badger.Opts().MemTableSize/fillerSize + 2 {
		if err := c.Fill(ctx, filler); err != nil {
			return err
		}
		// A full table makes room for one with a new log; what is filled in from then on
		// would stay.
		now, err := logsIn(d.dir)
		if err != nil {
			return err
		}
		if len(now) > 0 && len(before) > 0 && now[len(now)-1] > before[len(before)-1] {
			break
		}
	}
	if err := c.Fill(ctx, nil); err != nil {
		return err
	}
	for !d.flushed(last) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// flushed reports whether a table on disk holds that version, or a later one: they
// are written in order.
func (d *db) flushed(version uint64) bool {
	for _, t := range d.badger.Tables() {
		if t.MaxVersion >= version {
			return true
		}
	}
	return false
}
