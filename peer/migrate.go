package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/durable"
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
	From, To   ondisk.Kind
	Namespaces int
	Records    int64 // tombstones included
	Entries    int64 // records, and what the store keeps beside them
	Bytes      int64 // of their keys and values
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
func Migrate(ctx context.Context, dir string, to ondisk.Kind, o MigrateOptions) (*Migration, error) {
	m, err := migrate(ctx, dir, to, o)
	if err != nil {
		return nil, fmt.Errorf("migrate %s to %s: %w", dir, to, err)
	}
	return m, nil
}

func migrate(ctx context.Context, dir string, to ondisk.Kind, o MigrateOptions) (_ *Migration, err error) {
	if _, err := os.Stat(filepath.Join(dir, restoringFile)); err == nil {
		return nil, fmt.Errorf("%w: a restore was cut short: empty the folder and restore again", ErrCorrupt)
	}
	note, err := readStoreNote(dir)
	if err != nil {
		return nil, err
	}
	from := filepath.Join(dir, note.Folder)
	kind, err := ondisk.KindOf(from)
	switch {
	case err != nil:
		return nil, err
	case kind == "":
		return nil, fmt.Errorf("%w: there is no store", ErrNotFound)
	case kind == to:
		return nil, fmt.Errorf("%w: the records are in %s already", ErrExists, to)
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
	if note, err = readStoreNote(dir); err != nil || filepath.Join(dir, note.Folder) != from {
		return nil, errors.Join(err, fmt.Errorf("%w: another migration has moved it meanwhile", ErrLocked))
	}
	if _, err := finishMove(dir, note); err != nil {
		return nil, err
	}
	m := &Migration{From: kind, To: to}
	if err := verifyStore(ctx, dir, source, m); err != nil {
		return nil, err
	}
	next := storeNote{Folder: storeDir + "-" + string(to), Before: note.Folder}
	if next.Folder == note.Folder {
		next.Folder = storeDir // the folder was named by hand
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
		err = next.write(dir)
	}
	if err != nil {
		if now, again := readStoreNote(dir); again == nil && now.Folder != next.Folder {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, next.Folder)))
		}
		return nil, err
	}
	closed = true
	if err := source.Close(); err != nil {
		return nil, fmt.Errorf("the records are in %s now, but %w", to, err)
	}
	if _, err := finishMove(dir, next); err != nil {
		return nil, fmt.Errorf("the records are in %s now, but the old store is not removed yet: %w", to, err)
	}
	return m, nil
}

// verifyStore reads all records and the kept logs of the namespaces that a node has.
func verifyStore(ctx context.Context, dir string, store dbadapter.Store, m *Migration) error {
	entries, err := os.ReadDir(filepath.Join(dir, namespacesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		id, err := parseNamespaceID(e.Name())
		if err != nil {
			continue // it is being made or dropped
		}
		f, err := loadState(namespaceDir(dir, id), id, "")
		if err != nil {
			return fmt.Errorf("namespace %x: %w", id, err)
		}
		m.Namespaces++
		for _, keys := range f.parts() {
			records, err := verifyNamespace(ctx, store, keys)
			if err != nil {
				return fmt.Errorf("namespace %q: %w", f.state.Name, err)
			}
			m.Records += records
		}
	}
	return nil
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
