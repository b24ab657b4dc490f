package offline

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/backup"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
)

// RestoreOptions say what is restored.
type RestoreOptions struct {
	// Generation is the one to restore. 0: the latest.
	Generation int
	// StoreKind is the kind of the store that the records go to, whatever they were
	// backed up from. Default: ondisk.Badger.
	StoreKind ondisk.Kind
	// Logger receives the log of the store. Default: it is discarded.
	Logger *slog.Logger
	// Progress, if not nil, receives how many bytes of the backup have been read, of how
	// many. Each is read twice, to be verified and to be restored.
	Progress func(read, of int64)
}

// Restore makes a node's folder of a backup. dir must be empty, or not there. All files
// of the generation, and of those that it follows, are compared with their manifests
// before anything is written. What was restored is opened and read before Restore
// returns. After an error dir is as it was.
//
// The restored node has the identity of the original, and the two must not run at the
// same time: NewIdentity makes the copy a node of its own. When it is opened, it goes
// on with a new incarnation and with a clock beyond all that it holds. So it repeats no
// version which the original made after the backup.
func Restore(ctx context.Context, from, dir string, o RestoreOptions) (_ *Backup, err error) {
	defer named(&err, "restore %s into %s", from, dir)
	backups, err := backup.Open(from)
	if err != nil {
		return nil, err
	}
	if o.Generation == 0 {
		o.Generation = backups.Latest
	}
	if o.Generation == 0 {
		return nil, fmt.Errorf("%w: the first one was not finished", ErrNoBackup)
	}
	line, err := backups.Line(o.Generation)
	if err != nil {
		return nil, err
	}
	// What is read twice counts twice.
	tick := ticker(append(line, line...), o.Progress)
	for _, m := range line {
		if err := backups.Verify(ctx, m, tick); err != nil {
			return nil, err
		}
	}
	last := line[len(line)-1]
	made, err := emptyDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, clearDir(dir, made))
		}
	}()
	if err := folder.BeginRestore(dir, folder.Restored{Generation: last.Generation, Taken: last.Taken.UnixMilli()}); err != nil {
		return nil, err
	}
	if err := restoreFiles(backups, last, dir); err != nil {
		return nil, err
	}
	err = ondisk.Restore(ctx, filepath.Join(dir, folder.StoreDir), o.StoreKind, ondisk.Options{Logger: o.Logger}, storeCopies(backups, line, tick))
	if err != nil {
		return nil, err
	}
	if err := checkRestored(ctx, dir, last, o.Logger); err != nil {
		return nil, fmt.Errorf("open what was restored: %w", err)
	}
	return BackupOf(last), folder.EndRestore(dir)
}

// emptyDir makes sure of an empty folder, and tells whether it was made.
func emptyDir(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, durable.DirMode); err != nil {
			return false, err
		}
		return true, durable.SyncDir(filepath.Dir(dir))
	case err != nil:
		return false, err
	case len(entries) > 0:
		return false, fmt.Errorf("%w: the folder holds %s, and perhaps more: give one that is empty, or not there yet", folder.ErrExists, entries[0].Name())
	}
	return false, nil
}

// clearDir undoes a restore.
func clearDir(dir string, made bool) error {
	if made {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// restoreFiles copies the node's files of a generation.
func restoreFiles(from *backup.Folder, m *backup.Manifest, dir string) error {
	for _, f := range m.Files {
		name, ok := strings.CutPrefix(f.Name, backup.NodeDir+"/")
		if !ok {
			continue
		}
		b, err := os.ReadFile(from.File(m.Generation, f.Name))
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), durable.DirMode); err != nil {
			return err
		}
		if err := durable.WriteFile(path, b); err != nil {
			return err
		}
	}
	// The names of the folders that were made.
	return folder.Sync(dir)
}

// storeCopies reads the copies of the store, one after another.
func storeCopies(from *backup.Folder, line []*backup.Manifest, tick func(int)) iter.Seq2[io.Reader, error] {
	return func(yield func(io.Reader, error) bool) {
		for _, m := range line {
			f, err := os.Open(from.File(m.Generation, backup.StoreFile))
			if err != nil {
				yield(nil, err)
				return
			}
			more := yield(&tickingReader{f, tick}, nil)
			_ = f.Close() // read only
			if !more {
				return
			}
		}
	}
}

type tickingReader struct {
	r    io.Reader
	tick func(int)
}

func (t *tickingReader) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	if t.tick != nil {
		t.tick(n)
	}
	return n, err
}

// checkRestored reads and verifies all records of a restored folder, and compares it with the
// manifest.
func checkRestored(ctx context.Context, dir string, m *backup.Manifest, log *slog.Logger) (err error) {
	key, err := folder.LoadKey(dir)
	if err != nil {
		return err
	}
	if id, _, err := folder.CheckKey(key); err != nil || id.String() != m.Node {
		return fmt.Errorf("%w: it holds the key of node %s, and is a backup of %s", ErrBackupDamaged, id, m.Node)
	}
	namespaces, err := folder.LoadAll(dir)
	if err != nil {
		return err
	}
	store, err := folder.OpenStore(dir, "", ondisk.Options{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	counts, err := verifyStore(ctx, namespaces, store)
	if err != nil {
		return err
	}
	has := map[string]int64{}
	for id, records := range counts {
		has[hex.EncodeToString(id[:])] = records
	}
	for _, set := range m.Namespaces {
		if records, ok := has[set.ID]; set.Name != "" && (!ok || records != int64(set.Records)) {
			return fmt.Errorf("%w: namespace %s has %d records, and had %d", ErrBackupDamaged, set.Name, records, set.Records)
		}
	}
	return nil
}
