package badgerkv

import (
	"context"

	"github.com/dgraph-io/badger/v4"
)

// Examine implements kv.DB.
func (d *db) Examine(ctx context.Context) error { return d.examiner.Look(ctx, true) }

// tables are those of Badger, as examiner.Tables.
type tables struct {
	badger *badger.DB
	dir    string
}

func (t tables) Tables() (ids []uint64, err error) {
	for _, table := range t.badger.Tables() {
		ids = append(ids, table.ID)
	}
	return ids, nil
}

func (t tables) Path(id uint64) string { return tableFile(t.dir, id) }

func (t tables) Read(_ context.Context, id uint64) error { return probeTable(t.dir, id, true) }
