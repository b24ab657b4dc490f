package offline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/reconcile"
)

// MigrateOptions say how records are moved.
type MigrateOptions struct {
	// Logger receives the logs of both stores. Default: they are discarded.
	Logger *slog.Logger
	// Progress, if not nil, receives how many bytes have been read. Each is read twice,
	// to be copied and to be compared.
	Progress func(read int64)
}

// Migration says what Migrate has moved.
type Migration struct {
	From       ondisk.Kind `json:"from"`
	To         ondisk.Kind `json:"to"`
	Namespaces int         `json:"namespaces"`
	Records    int64       `json:"records"` // tombstones included
	Entries    int64       `json:"entries"` // records, and what the store keeps beside them
	Bytes      int64       `json:"bytes"`   // of their keys and values
}

// Migrate moves the records of a node that is not running from their store to one of
// another kind. First it reads and verifies all records and all that was kept. Then it
// copies all entries as they are, so that sequence numbers, ceilings, the change log
// that watchers read, the kept log and the lines of backups go on. It reads the copy
// and compares it by a digest. The node then changes to the new store in one durable
// step, and the old one is removed. After an error, or a crash before that step, the
// node has the old store. The next Migrate removes what was copied.
//
// ErrLocked: the node runs. ErrExists: the records are in a store of that kind
// already. ErrCorrupt: the old store is damaged, and stays as it is.
func Migrate(ctx context.Context, dir string, to ondisk.Kind, o MigrateOptions) (_ *Migration, err error) {
	defer named(&err, "migrate %s to %s", dir, to)
	if err := folder.Restoring(dir); err != nil {
		return nil, err
	}
	note, err := folder.ReadStore(dir)
	if err != nil {
		return nil, err
	}
	from := filepath.Join(dir, note.Folder)
	kind, err := ondisk.KindOf(from)
	switch {
	case err != nil:
		return nil, err
	case kind == "":
		return nil, fmt.Errorf("%w: there is no store", dbadapter.ErrNotFound)
	case kind == to:
		return nil, fmt.Errorf("%w: the records are in %s already", folder.ErrExists, to)
	}
	options := ondisk.Options{Logger: o.Logger}
	source, err := ondisk.Open(from, kind, options)
	if err != nil {
		return nil, err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, source.Close())
		}
	}()
	// The lock is held: no node runs, and no other migration.
	if note, err = folder.ReadStore(dir); err != nil || filepath.Join(dir, note.Folder) != from {
		return nil, errors.Join(err, fmt.Errorf("%w: another migration has moved it meanwhile", dbadapter.ErrLocked))
	}
	if _, err := note.FinishMove(dir); err != nil {
		return nil, err
	}
	namespaces, err := folder.LoadAll(dir)
	if err != nil {
		return nil, err
	}
	counts, err := verifyStore(ctx, namespaces, source)
	if err != nil {
		return nil, err
	}
	m := &Migration{From: kind, To: to, Namespaces: len(namespaces)}
	for _, records := range counts {
		m.Records += records
	}
	next := folder.Store{Folder: folder.StoreDir + "-" + string(to), Before: note.Folder}
	if next.Folder == note.Folder {
		next.Folder = folder.StoreDir // the folder was named by hand
	}
	if err := os.RemoveAll(filepath.Join(dir, next.Folder)); err != nil { // of a migration that was cut short
		return nil, err
	}
	moved, err := ondisk.Copy(ctx, source, filepath.Join(dir, next.Folder), to, options, o.Progress)
	if err == nil {
		m.Entries, m.Bytes = int64(moved.Entries), moved.Bytes
		err = durable.SyncDir(dir)
	}
	if err == nil {
		err = next.Write(dir)
	}
	if err != nil {
		if now, again := folder.ReadStore(dir); again == nil && now.Folder != next.Folder {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, next.Folder)))
		}
		return nil, err
	}
	closed = true
	if err := source.Close(); err != nil {
		return nil, fmt.Errorf("the records are in %s now, but %w", to, err)
	}
	if _, err := next.FinishMove(dir); err != nil {
		return nil, fmt.Errorf("the records are in %s now, but the old store is not removed yet: %w", to, err)
	}
	return m, nil
}

// verifyStore reads all records and the kept logs of the namespaces that a node has, and counts the
// records of each set, tombstones included.
func verifyStore(ctx context.Context, all []folder.Namespace, store dbadapter.Store) (map[dbadapter.NamespaceID]int64, error) {
	counts := map[dbadapter.NamespaceID]int64{}
	for _, ns := range all {
		for _, keys := range ns.Parts() {
			records, err := verifyNamespace(ctx, store, keys)
			if err != nil {
				return nil, fmt.Errorf("namespace %q: %w", ns.State.Name, err)
			}
			counts[keys.ID] = records
		}
	}
	return counts, nil
}

func verifyNamespace(ctx context.Context, store dbadapter.Store, keys reconcile.Keys) (records int64, err error) {
	n, err := store.Namespace(ctx, keys.ID, keys.Hasher, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	view, err := n.Snapshot()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	for _, err := range view.Scan(ctx, nil, nil) { // compares them with what the commits have added up to
		if err != nil {
			return 0, err
		}
		records++
	}
	for _, err := range view.Pairs(ctx, 0, 0) {
		if err != nil {
			return 0, err
		}
	}
	for _, err := range n.Kept(ctx) {
		if err != nil {
			return 0, err
		}
	}
	return records, nil
}

// StoreKind is the kind of the store in which the folder of a node keeps its records, or "" before it
// has a store. A store that is not on disk has a kind too; the folder then says nothing more of it.
func StoreKind(dir string) (ondisk.Kind, error) { return folder.StoreKind(dir) }
