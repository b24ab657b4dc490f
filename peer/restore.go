package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/backup"
	"github.com/syncd-io/syncd/internal/durable"
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
func Restore(ctx context.Context, from, dir string, o RestoreOptions) (*Backup, error) {
	m, err := restore(ctx, from, dir, o)
	if err != nil {
		return nil, fmt.Errorf("restore %s into %s: %w", from, dir, err)
	}
	return backupOf(m), nil
}

func restore(ctx context.Context, from, dir string, o RestoreOptions) (_ *backup.Manifest, err error) {
	folder, err := backup.Open(from)
	if err != nil {
		return nil, err
	}
	if o.Generation == 0 {
		o.Generation = folder.Latest
	}
	if o.Generation == 0 {
		return nil, fmt.Errorf("%w: the first one was not finished", ErrNoBackup)
	}
	line, err := folder.Line(o.Generation)
	if err != nil {
		return nil, err
	}
	// What is read twice counts twice.
	tick := ticker(append(line, line...), o.Progress)
	for _, m := range line {
		if err := folder.Verify(ctx, m, tick); err != nil {
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
	note := restoredNote{Generation: last.Generation, Taken: last.Taken.UnixMilli()}
	if err := saveNote(durable.File{Path: filepath.Join(dir, restoringFile), Kind: restoredFile}, note); err != nil {
		return nil, err
	}
	if err := restoreFiles(folder, last, dir); err != nil {
		return nil, err
	}
	err = ondisk.Restore(ctx, filepath.Join(dir, storeDir), o.StoreKind, ondisk.Options{Logger: o.Logger}, storeCopies(folder, line, tick))
	if err != nil {
		return nil, err
	}
	if err := tryRestored(ctx, dir, last, o.Logger); err != nil {
		return nil, fmt.Errorf("open what was restored: %w", err)
	}
	if err := os.Rename(filepath.Join(dir, restoringFile), filepath.Join(dir, restoredFile)); err != nil {
		return nil, err
	}
	return last, durable.SyncDir(dir)
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
		return false, fmt.Errorf("%w: the folder holds %s, and perhaps more: give one that is empty, or not there yet", ErrExists, entries[0].Name())
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
func restoreFiles(folder *backup.Folder, m *backup.Manifest, dir string) error {
	for _, f := range m.Files {
		name, ok := strings.CutPrefix(f.Name, backup.NodeDir+"/")
		if !ok {
			continue
		}
		b, err := os.ReadFile(folder.File(m.Generation, f.Name))
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
	return errors.Join(durable.SyncDir(dir), syncExisting(filepath.Join(dir, namespacesDir)))
}

func syncExisting(dir string) error {
	if err := durable.SyncDir(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// storeCopies reads the copies of the store, one after another.
func storeCopies(folder *backup.Folder, line []*backup.Manifest, tick func(int)) iter.Seq2[io.Reader, error] {
	return func(yield func(io.Reader, error) bool) {
		for _, m := range line {
			f, err := os.Open(folder.File(m.Generation, backup.StoreFile))
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

// tryRestored opens the restored node without a listener, which reads all records
// and verifies them, and compares it with the manifest.
func tryRestored(ctx context.Context, dir string, m *backup.Manifest, log *slog.Logger) error {
	n, err := Open(ctx, Config{Dir: dir, ListenAddrs: []string{}, Logger: log, restoring: true})
	if err != nil {
		return err
	}
	check := func() error {
		if n.ID().String() != m.Node {
			return fmt.Errorf("%w: it holds the key of node %s, and is a backup of %s", ErrBackupDamaged, n.ID(), m.Node)
		}
		had := map[string]uint64{} // by namespaces, with the entries of their directories
		for _, set := range m.Namespaces {
			had[cmp.Or(set.Of, set.ID)] += set.Records
		}
		for _, want := range backupOf(m).Namespaces {
			ns, err := n.Namespace(want.Name)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrBackupDamaged, err)
			}
			has := uint64(0)
			for _, sh := range ns.shards() {
				_, records, _ := sh.set.Live.State()
				has += records
			}
			if ns.Info().ID != want.ID || has != had[want.ID] {
				return fmt.Errorf("%w: namespace %s has %d records, and had %d", ErrBackupDamaged, want.Name, has, had[want.ID])
			}
		}
		return nil
	}
	return errors.Join(check(), n.Close(context.WithoutCancel(ctx)))
}

// The note of a restore lies in the node's folder. It is named restoring while the
// restore goes on, so that no node opens a part of a copy. Then it is named restored
// until the node has taken notice.
const (
	restoringFile = "restoring"
	restoredFile  = "restored"
)

// restoredNote says of which backup a node's folder was made.
type restoredNote struct {
	Generation int   `cbor:"2,keyasint"`
	Taken      int64 `cbor:"3,keyasint"` // Unix milliseconds
}

// taken is the moment that the backup shows.
func (r *restoredNote) taken() time.Time { return time.UnixMilli(r.Taken).UTC() }

// readRestored reads the note of a restore that the node has not taken notice of;
// nil if there is no such note. Beside the error of a damaged one it says nothing but that
// there was a restore. A restore that was cut short is an error.
func readRestored(dir string, restoring bool) (*restoredNote, error) {
	if _, err := os.Stat(filepath.Join(dir, restoringFile)); err == nil && !restoring {
		return nil, fmt.Errorf("%w: a restore into %s was cut short: empty the folder and restore again", ErrCorrupt, dir)
	}
	r := new(restoredNote)
	err := loadNote(durable.File{Path: filepath.Join(dir, restoredFile), Kind: restoredFile}, r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return r, err
}

// noticedRestored removes the note: that the node may lack something is durable in
// the states of its namespaces.
func noticedRestored(dir string) error {
	if err := os.Remove(filepath.Join(dir, restoredFile)); err != nil {
		return err
	}
	return durable.SyncDir(dir)
}
