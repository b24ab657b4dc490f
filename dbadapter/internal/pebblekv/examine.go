package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

var _ kv.Examiner = (*db)(nil)

// Examine implements kv.Examiner: it compares the checksums of all blocks of all tables.
func (d *db) Examine(ctx context.Context) error {
	_, err := d.damaged(ctx)
	return err
}

// damaged reads all tables. It returns those that are damaged, and an ErrCorrupt that
// names them; any other error alone.
func (d *db) damaged(ctx context.Context) (bad []pebble.SSTableInfo, found error) {
	levels, err := d.pebble.SSTables()
	if err != nil {
		return nil, named(err)
	}
	for _, level := range levels {
		for i := range level {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			path := filepath.Join(d.dir, tableName(&level[i]))
			err := examineTable(ctx, path)
			switch {
			case err == nil:
				continue
			case errors.Is(err, fs.ErrNotExist):
				gone, failed := d.isGone(&level[i])
				if failed != nil {
					return nil, failed
				}
				if gone {
					continue // a compaction has merged it meanwhile
				}
				err = damage.File(path, "it is missing")
			case damage.Is(err):
				err = damage.File(path, "%v", err)
			default:
				return nil, fmt.Errorf("read the file %s: %w", filepath.Base(path), err)
			}
			bad, found = append(bad, level[i]), errors.Join(found, err)
		}
	}
	return bad, found
}

// tableName is the file of a table.
func tableName(t *pebble.SSTableInfo) string {
	return fmt.Sprintf("%06d.sst", uint64(t.BackingSSTNum))
}

// isGone reports that the database has a table no more.
func (d *db) isGone(t *pebble.SSTableInfo) (bool, error) {
	levels, err := d.pebble.SSTables()
	if err != nil {
		return false, named(err)
	}
	for _, level := range levels {
		for i := range level {
			if level[i].BackingSSTNum == t.BackingSSTNum {
				return false, nil
			}
		}
	}
	return true, nil
}

// examineTable reads a table through.
func examineTable(ctx context.Context, path string) (err error) {
	defer damage.Recovered(path, &err)
	f, err := vfs.Default.Open(path)
	if err != nil {
		return err
	}
	file, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(ctx, file, sstable.ReaderOptions{})
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}
