package folder

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
	"github.com/syncd-io/syncd/internal/node"
)

// Store says in which folder the records lie. It is StoreDir until they were moved to another kind
// of store; the file store.cbor says so then. A migration changes that file in one step, when the
// new store is complete and verified.
type Store struct {
	Folder string `cbor:"2,keyasint"`
	// Before is the folder that they lay in, and that is to be removed; empty if it is
	// gone.
	Before string `cbor:"3,keyasint,omitempty"`
	// Damaged: a repair has left that folder, and it is kept aside.
	Damaged bool `cbor:"4,keyasint,omitempty"`
}

// ReadStore reads where the records lie.
func ReadStore(dir string) (Store, error) {
	f, s := storeIn(dir), Store{Folder: StoreDir}
	err := LoadNote(f, &s)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	} else if err == nil && (!isStoreFolder(s.Folder) || s.Before != "" && !isStoreFolder(s.Before) || s.Folder == s.Before) {
		err = durable.Damaged(f.Path, "is damaged (it names the folders %q and %q)", s.Folder, s.Before)
	}
	if err != nil {
		return s, durable.Unusable(f.Path, err, "move it away, and rename the folder of the store (it is "+StoreDir+", or begins with "+StoreDir+"-) to "+StoreDir)
	}
	if _, err := os.Stat(filepath.Join(dir, s.Folder)); !errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	entries, _ := os.ReadDir(dir) // it may not be there yet
	for _, e := range entries {
		if isStoreFolder(e.Name()) && e.IsDir() && e.Name() != s.Before {
			return s, durable.Damaged(f.Path, "is missing, or names another folder than that of the store: move it away, and rename %s to %s", filepath.Join(dir, e.Name()), StoreDir)
		}
	}
	return s, nil
}

func storeIn(dir string) durable.File {
	return durable.File{Path: filepath.Join(dir, storeFile), Kind: "store"}
}

// StoreKind returns the kind of the store in which the folder of a node keeps its
// records, or "" before it has a store. A store that is not on disk has a kind too; the
// folder then says nothing more of it.
func StoreKind(dir string) (ondisk.Kind, error) {
	note, err := ReadStore(dir)
	if err != nil {
		return "", err
	}
	return ondisk.KindOf(filepath.Join(dir, note.Folder))
}

// isStoreFolder reports whether a name is one that this package gives: what a note
// names may be removed.
func isStoreFolder(name string) bool {
	return name == StoreDir || strings.HasPrefix(name, StoreDir+"-") && name == filepath.Base(name)
}

// Write makes it durable.
func (s Store) Write(dir string) error {
	return SaveNote(storeIn(dir), s)
}

// OpenStore opens the store of a node, and removes the one that a migration or a repair has left.
// An empty kind is that of the store that is there. A migration that ends meanwhile moves the store,
// and gives up its lock. ErrRepairable: it is damaged.
func OpenStore(dir string, kind ondisk.Kind, o ondisk.Options) (dbadapter.Store, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for {
		note, err := ReadStore(dir)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, note.Folder)
		if held, err := ondisk.KindOf(path); err == nil && held == "" && note.Before != "" {
			return nil, fmt.Errorf("%w: there is no store in %s, which %s names; if %s is there, remove that file and start again",
				dbadapter.ErrCorrupt, path, storeIn(dir).Path, filepath.Join(dir, note.Before))
		}
		store, err := openKind(dir, path, kind, o)
		now, again := ReadStore(dir)
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
		if _, err := now.FinishMove(dir); err != nil {
			o.Logger.Warn("the store that was moved could not be removed, and takes up room", slog.String("dir", filepath.Join(dir, now.Before)), slog.String("error", err.Error()))
		}
		return store, nil
	}
}

func openKind(dir, path string, kind ondisk.Kind, o ondisk.Options) (dbadapter.Store, error) {
	held, err := ondisk.KindOf(path)
	if errors.Is(err, dbadapter.ErrCorrupt) && !errors.Is(err, dbadapter.ErrFormat) {
		return nil, repairable{err}
	}
	if err != nil {
		return nil, err
	}
	if held.OnDisk() && kind != "" && kind != held {
		return nil, fmt.Errorf("%w: %s keeps its records in %s, and the setting store says %s: leave the setting out, or move them first: syncd migrate %s",
			node.ErrInvalid, dir, held, kind, kind)
	}
	store, err := ondisk.Open(path, kind, o)
	if errors.Is(err, dbadapter.ErrCorrupt) {
		err = repairable{err}
	}
	return store, err
}

// repairable is an error that is ErrRepairable, too.
type repairable struct{ error }

func (r repairable) Unwrap() []error { return []error{r.error, ErrRepairable} }

// FinishMove removes the store that a migration has left, or keeps aside the one that a repair
// has, and notes it. The caller has the lock of the new one.
func (s Store) FinishMove(dir string) (kept string, err error) {
	if s.Before == "" {
		return "", nil
	}
	before := filepath.Join(dir, s.Before)
	if s.Damaged {
		kept, err = durable.MoveAside(before, filepath.Join(dir, DamagedDir))
		if errors.Is(err, fs.ErrNotExist) { // it was moved, and that is not noted yet
			err = nil
		}
	} else {
		err = os.RemoveAll(before)
	}
	if err != nil {
		return "", err
	}
	s.Before, s.Damaged = "", false
	return kept, s.Write(dir)
}
