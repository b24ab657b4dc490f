package cli

import (
	"context"
	"strconv"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/peer/offline"
)

type migrateCmd struct {
	Kind string `arg:"" name:"kind" help:"The database to move to: badger or pebble." enum:"badger,pebble"`
}

func (migrateCmd) Help() string {
	return `Works on the data directory of a node that is not running, and needs as much room beside it as the records take. All records are read and verified, copied as they are with all that belongs to them, and the copy is compared with what was written; then the node changes over in one step, and the old store is removed. After an error, or a crash before that step, the node has its old store, and migrate may be run again.

Numbers of changes, watchers' cursors, what "conflicts" and "rejected" list, and the lines of backups go on. Records move into PostgreSQL, or out of it, by a second node that joins and syncs. From then on the node opens the new store by itself: take a --store that says otherwise out of its flags, environment and configuration.

Examples:
    syncd migrate pebble
    syncd migrate badger --data-dir /srv/notes`
}

// migrated says what migrate did.
type migrated struct {
	From       string `json:"from"`
	To         string `json:"to"`
	Namespaces int    `json:"namespaces"`
	Records    int64  `json:"records"`
	Entries    int64  `json:"entries"`
	Bytes      int64  `json:"bytes"`
}

// Run moves the records.
func (c migrateCmd) Run(ctx context.Context, a *app) error {
	bars := a.bars()
	bar := bars.Bytes("migrate", 0)
	m, err := offline.Migrate(ctx, a.DataDir, ondisk.Kind(c.Kind), offline.MigrateOptions{Progress: bar.Set})
	bar.Done()
	bars.Close()
	if err != nil {
		return err
	}
	out := migrated{string(m.From), string(m.To), m.Namespaces, m.Records, m.Entries, m.Bytes}
	return a.answer(nil, out, func() {
		t := a.table("", "")
		t.row("from", out.From)
		t.row("to", out.To)
		t.row("namespaces", strconv.Itoa(out.Namespaces))
		t.row("records", strconv.FormatInt(out.Records, 10)+", their members' lists included")
		t.row("bytes", size(out.Bytes)+", compared")
		t.print()
	})
}
