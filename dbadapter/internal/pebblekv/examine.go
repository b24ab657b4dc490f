package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// Examine implements kv.DB: it compares the checksums of all blocks of all tables.
func (d *db) Examine(ctx context.Context) error { return d.examiner.Look(ctx, true) }

// tables are those of Pebble, as examiner.Tables. What Pebble takes for two may be two
// parts of one file.
type tables struct{ db *db }

func (t tables) Tables() (ids []uint64, err error) {
	levels, err := t.db.pebble.SSTables()
	if err != nil {
		return nil, named(err)
	}
	seen := map[uint64]bool{}
	for _, level := range levels {
		for i := range level {
			if id := uint64(level[i].BackingSSTNum); !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

func (t tables) Path(id uint64) string { return tableFile(t.db.dir, id) }

func (t tables) Read(ctx context.Context, id uint64) error { return t.db.examine(ctx, id) }

// tableFile is the file of a table.
func tableFile(dir string, id uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%06d.sst", id))
}

// examine reads a table through, and names one that is damaged.
func (d *db) examine(ctx context.Context, id uint64) error {
	path := tableFile(d.dir, id)
	err := examineTable(ctx, path)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, fs.ErrNotExist):
		return err
	case damage.Is(err):
		return damage.File(path, "%v", err)
	}
	return fmt.Errorf("read the file %s: %w", filepath.Base(path), err)
}

// examineTable reads a table through.
func examineTable(ctx context.Context, path string) (err error) {
	defer damage.Recovered(path, &err)
	f, err := boundedFS{vfs.Default}.Open(path)
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
