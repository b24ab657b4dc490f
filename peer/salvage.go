package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/reconcile"
)

// Salvaged says what Salvage has left behind.
type Salvaged struct {
	// Damage are the damaged places, by file.
	Damage []string
	// Namespaces are all that the node has, by name.
	Namespaces []SalvagedNamespace
}

// SalvagedNamespace is a namespace after a salvage.
type SalvagedNamespace struct {
	Name string
	// Lost is nil if nothing is missing.
	Lost *Lost
}

// Salvage repairs the store of a node that is not running, and perhaps cannot be opened:
// its files are made anew of what can be read of them, and what is missing is noted.
// When the node runs again, it is one that was restored from a copy: it takes back from
// the members what it lacks with its next syncs, or with Repair. The damaged files are kept
// in the folder damaged of dir, unless one is there already.
//
// ErrLocked: the node runs. ErrCorrupt: what says what the files are is damaged.
func Salvage(ctx context.Context, dir string, log *slog.Logger) (*Salvaged, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s, err := salvage(ctx, dir, log, keepDamaged(dir, log))
	if err != nil {
		return nil, fmt.Errorf("repair the store of %s: %w", dir, err)
	}
	return s, nil
}

// salvage calls keep with the folder of the store before that changes.
func salvage(ctx context.Context, dir string, log *slog.Logger, keep func(store string) error) (*Salvaged, error) {
	if _, err := os.Stat(filepath.Join(dir, restoringFile)); err == nil {
		return nil, fmt.Errorf("%w: a restore was cut short: empty the folder and restore again", ErrCorrupt)
	}
	note, err := readStoreNote(dir)
	if err != nil {
		return nil, err
	}
	store := filepath.Join(dir, note.Folder)
	switch kind, err := ondisk.KindOf(store); {
	case err != nil && !errors.Is(err, ErrCorrupt):
		return nil, err
	case err == nil && kind == "":
		return nil, fmt.Errorf("%w: there is no store in %s", ErrNotFound, dir)
	}
	var folders []folder
	known := func() (_ map[dbadapter.NamespaceID]dbadapter.Hasher, err error) {
		if err := keep(store); err != nil {
			return nil, err
		}
		if folders, err = readFolders(dir); err != nil {
			return nil, err
		}
		for i := range folders { // before anything is missing
			folders[i].state.Recover()
			if err := folders[i].save(); err != nil {
				return nil, err
			}
		}
		return knownParts(folders), nil
	}
	out := &Salvaged{}
	done, err := ondisk.Salvage(ctx, store, ondisk.Options{Logger: log}, known, func(done *dbadapter.Salvaged) error {
		for i := range folders {
			f := &folders[i]
			data, control := lossesOf(f.parts(), done)
			f.state.Lose(data, control, done.Older, time.Now())
			if err := f.save(); err != nil {
				return err
			}
			out.Namespaces = append(out.Namespaces, SalvagedNamespace{f.state.Name, lostOf(f.state.Lost)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := forgetDamage(dir); err != nil {
		return nil, err
	}
	out.Damage = done.Damage
	slices.SortFunc(out.Namespaces, func(a, b SalvagedNamespace) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// readFolders reads the states of all namespaces of a node. Those that are being
// dropped are not among them.
func readFolders(dir string) (folders []folder, err error) {
	ids, _, err := namespaceDirs(filepath.Join(dir, namespacesDir))
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		f, err := loadState(namespaceDir(dir, id), id, "")
		if err != nil {
			return nil, fmt.Errorf("namespace %x: %w", id, err)
		}
		folders = append(folders, f)
	}
	return folders, nil
}

// lossesOf are what a salvage has left the sets, and the control namespace, without: it is
// the last of the parts.
func lossesOf(parts []reconcile.Keys, done *dbadapter.Salvaged) (data, control dbadapter.Loss) {
	last := len(parts) - 1
	for _, keys := range parts[:last] {
		data = data.Plus(done.Lost[keys.ID])
	}
	return data, done.Lost[parts[last].ID]
}

// knownParts are the hashers of the namespaces that a node's folder holds, and of their
// control namespaces.
func knownParts(folders []folder) map[dbadapter.NamespaceID]dbadapter.Hasher {
	known := map[dbadapter.NamespaceID]dbadapter.Hasher{}
	for _, f := range folders {
		for _, keys := range f.parts() {
			known[keys.ID] = keys.Hasher
		}
	}
	return known
}
