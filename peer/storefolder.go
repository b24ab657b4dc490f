package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/durable"
)

// A node's records lie in the folder storeDir, or, once they were moved to another kind
// of store, in a folder beside it that the file storeFile names. That file is what a
// migration changes, in one step, when the new store is complete and verified.
const (
	storeDir  = "store"
	storeFile = "store.cbor"
)

// storeNote says where the records lie.
type storeNote struct {
	Folder string `cbor:"2,keyasint"`
	// Before is the folder that they lay in, and that is to be removed; empty if it is
	// gone.
	Before string `cbor:"3,keyasint,omitempty"`
	// Damaged: a repair has left that folder, and it is kept aside.
	Damaged bool `cbor:"4,keyasint,omitempty"`
}

func readStoreNote(dir string) (storeNote, error) {
	f, s := storeFileIn(dir), storeNote{Folder: storeDir}
	err := loadNote(f, &s)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	} else if err == nil && (!isStoreFolder(s.Folder) || s.Before != "" && !isStoreFolder(s.Before) || s.Folder == s.Before) {
		err = durable.Damaged(f.Path, "is damaged (it names the folders %q and %q)", s.Folder, s.Before)
	}
	if err != nil {
		return s, durable.Unusable(f.Path, err, "move it away, and rename the folder of the store (it is "+storeDir+", or begins with "+storeDir+"-) to "+storeDir)
	}
	if _, err := os.Stat(filepath.Join(dir, s.Folder)); !errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	entries, _ := os.ReadDir(dir) // it may not be there yet
	for _, e := range entries {
		if isStoreFolder(e.Name()) && e.IsDir() && e.Name() != s.Before {
			return s, durable.Damaged(f.Path, "is missing, or names another folder than that of the store: move it away, and rename %s to %s", filepath.Join(dir, e.Name()), storeDir)
		}
	}
	return s, nil
}

func storeFileIn(dir string) durable.File {
	return durable.File{Path: filepath.Join(dir, storeFile), Kind: "store"}
}

// StoreKindOf returns the kind of the store in which the folder of a node keeps its
// records, or "" before it has a store. A store that is not on disk has a kind too; the
// folder then says nothing more of it.
func StoreKindOf(dir string) (ondisk.Kind, error) {
	note, err := readStoreNote(dir)
	if err != nil {
		return "", err
	}
	return ondisk.KindOf(filepath.Join(dir, note.Folder))
}

// isStoreFolder reports whether a name is one that this package gives: what a note
// names may be removed.
func isStoreFolder(name string) bool {
	return name == storeDir || strings.HasPrefix(name, storeDir+"-") && name == filepath.Base(name)
}

func (s storeNote) write(dir string) error {
	return saveNote(storeFileIn(dir), s)
}

// openDirStore opens the node's own store. A migration that ends meanwhile moves it,
// and gives up its lock.
func (n *Node) openDirStore(cfg *Config) (dbadapter.Store, error) {
	for {
		note, err := readStoreNote(n.dir)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(n.dir, note.Folder)
		if kind, err := ondisk.KindOf(dir); err == nil && kind == "" && note.Before != "" {
			return nil, fmt.Errorf("%w: there is no store in %s, which %s names; if %s is there, remove that file and start again",
				ErrCorrupt, dir, storeFileIn(n.dir).Path, filepath.Join(n.dir, note.Before))
		}
		store, err := n.openKind(dir, cfg)
		now, again := readStoreNote(n.dir)
		switch {
		case again != nil || now.Folder != note.Folder:
			if err == nil {
				err = store.Close()
			}
			if again != nil {
				return nil, errors.Join(again, err)
			}
			continue
		case err != nil:
			return nil, err
		}
		n.removeMoved(now)
		return store, nil
	}
}

func (n *Node) openKind(dir string, cfg *Config) (dbadapter.Store, error) {
	kind := cfg.StoreKind
	held, err := ondisk.KindOf(dir)
	if errors.Is(err, ErrCorrupt) && !errors.Is(err, dbadapter.ErrFormat) {
		return nil, repairable{err}
	}
	if err != nil {
		return nil, err
	}
	if held.OnDisk() && kind != "" && kind != held {
		return nil, fmt.Errorf("%w: %s keeps its records in %s, and the setting store says %s: leave the setting out, or move them first: syncd migrate %s",
			ErrInvalid, n.dir, held, kind, kind)
	}
	store, err := ondisk.Open(dir, kind, ondisk.Options{Logger: n.log, Now: n.now, Memory: cfg.memory() / 4, LogLimit: cfg.WatchLog, MinFree: cfg.DiskReserve, Damaged: func(err error) { _ = n.met(err) }, Failed: n.fail})
	if errors.Is(err, ErrCorrupt) {
		err = repairable{err}
	}
	return store, err
}

// repairable is an error that is ErrRepairable, too.
type repairable struct{ error }

func (r repairable) Unwrap() []error { return []error{r.error, ErrRepairable} }

// removeMoved removes the store that a migration or a repair has left.
func (n *Node) removeMoved(note storeNote) {
	if _, err := finishMove(n.dir, note); err != nil {
		n.log.Warn("the store that was moved could not be removed, and takes up room", slog.String("dir", filepath.Join(n.dir, note.Before)), logError(err))
	}
}

// finishMove removes the store that a migration has left, or keeps aside the one that a repair
// has, and notes it. The caller has the lock of the new one.
func finishMove(dir string, note storeNote) (kept string, err error) {
	if note.Before == "" {
		return "", nil
	}
	before := filepath.Join(dir, note.Before)
	if note.Damaged {
		kept, err = durable.MoveAside(before, filepath.Join(dir, damagedDir))
		if errors.Is(err, fs.ErrNotExist) { // it was moved, and that is not noted yet
			err = nil
		}
	} else {
		err = os.RemoveAll(before)
	}
	if err != nil {
		return "", err
	}
	note.Before, note.Damaged = "", false
	return kept, note.write(dir)
}
