package offline

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/status"
)

// Repaired says what Repair has done.
type Repaired struct {
	// Kept is the folder with the damaged files.
	Kept string
	// Why is the error with which the damaged database did not open, so that nothing was
	// carried over; nil: it was read.
	Why error
	// Namespaces are all that the node has, by name.
	Namespaces []RepairedNamespace
	// Strange are the ids of sets of records of which no folder is here: they stay with the
	// damaged files alone.
	Strange []string
}

// RepairedNamespace is a namespace after a repair.
type RepairedNamespace struct {
	Name string
	Lost *status.Lost
}

// Repair gives a node that is not running a new store in the place of one that is damaged. What
// the database of the damaged store still reads is carried over. Each namespace is then one
// that was restored from a copy: when the node runs, syncs with the members bring back what
// they hold. The damaged files stay, in the folder "damaged" of dir.
//
// After an error, or a crash before the end, the node has the damaged store. ErrLocked: the
// node runs. ErrFileDamaged: a small file must be put right first.
func Repair(ctx context.Context, dir string, log *slog.Logger) (_ *Repaired, err error) {
	defer named(&err, "repair the store of %s", dir)
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := folder.Restoring(dir); err != nil {
		return nil, err
	}
	note, err := folder.ReadStore(dir)
	if err != nil {
		return nil, err
	}
	from := filepath.Join(dir, note.Folder)
	switch kind, err := ondisk.KindOf(from); {
	case err != nil && !errors.Is(err, dbadapter.ErrCorrupt):
		return nil, err
	case err == nil && kind == "":
		return nil, fmt.Errorf("%w: there is no store in %s", dbadapter.ErrNotFound, dir)
	}
	next := folder.Store{Folder: folder.StoreDir, Before: note.Folder, Damaged: true}
	if next.Folder == note.Folder {
		next.Folder = folder.StoreDir + "-2"
	}
	var namespaces []folder.Namespace
	known := func() (_ map[dbadapter.NamespaceID]dbadapter.Hasher, err error) {
		// The lock is held: no node runs, and no other repair.
		if now, err := folder.ReadStore(dir); err != nil || now.Folder != note.Folder {
			return nil, errors.Join(err, fmt.Errorf("%w: the store was moved meanwhile", dbadapter.ErrLocked))
		}
		if _, err := note.FinishMove(dir); err != nil {
			return nil, err
		}
		if namespaces, err = folder.LoadAll(dir); err != nil {
			return nil, err
		}
		return knownParts(namespaces), nil
	}
	out := &Repaired{}
	err = ondisk.Rescue(ctx, from, filepath.Join(dir, next.Folder), ondisk.Options{Logger: log}, known, func(r ondisk.Rescued) error {
		out.Why = r.Why
		for _, id := range r.Strange {
			out.Strange = append(out.Strange, hex.EncodeToString(id[:]))
		}
		for i := range namespaces {
			ns := &namespaces[i]
			var missing []int64
			for _, keys := range ns.Parts() {
				missing = append(missing, r.Missing[keys.ID])
			}
			ns.State.Recover()
			ns.State.Lose(missing, time.Now())
			if err := ns.Save(); err != nil {
				return err
			}
			out.Namespaces = append(out.Namespaces, RepairedNamespace{ns.State.Name, ns.State.Lost.Status()})
		}
		err := next.Write(dir)
		if now, failed := folder.ReadStore(dir); failed == nil && now.Folder == next.Folder {
			return nil // it may not be durable yet: then the damaged store stays
		}
		return err
	})
	if err == nil {
		err = folder.ForgetDamage(dir)
	}
	if err != nil {
		return nil, err
	}
	if out.Kept, err = next.FinishMove(dir); err != nil {
		return nil, fmt.Errorf("the new store is complete, but the damaged one is not moved away yet: %w", err)
	}
	slices.SortFunc(out.Namespaces, func(a, b RepairedNamespace) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// knownParts are the hashers of the namespaces that a node's folder holds, and of their
// control namespaces.
func knownParts(all []folder.Namespace) map[dbadapter.NamespaceID]dbadapter.Hasher {
	known := map[dbadapter.NamespaceID]dbadapter.Hasher{}
	for _, ns := range all {
		for _, keys := range ns.Parts() {
			known[keys.ID] = keys.Hasher
		}
	}
	return known
}
