package peer

import (
	"cmp"
	"context"
	"encoding/hex"
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
	"github.com/syncd-io/syncd/internal/node"
)

// damagedDir is, in a node's folder, where a repair puts the damaged store; of a second one a
// number is appended. It stays until a person removes it.
const damagedDir = "damaged"

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
	Lost *Lost
}

// Lost says that the node's store was damaged and made anew, and what that has cost. What
// members hold comes back by syncs. What only this node had written is lost for good.
type Lost struct {
	// Records is how many records were missing from the new store; -1: that is not known.
	Records int64
	// Shards are those of which records were missing, in a namespace of shards.
	Shards []uint32
	// At is when the store was made anew.
	At time.Time
}

func lostOf(l *node.Lost) *Lost {
	if l == nil {
		return nil
	}
	out := &Lost{Records: l.Records, At: time.UnixMilli(l.At).UTC()}
	for _, shard := range l.Shards {
		out.Shards = append(out.Shards, uint32(shard))
	}
	return out
}

// missing is how many records that is; -1: that is not known.
func (l *Lost) missing() int64 {
	switch {
	case l == nil:
		return 0
	case l.Records == 0: // none is missing, but some may be older ones
		return -1
	}
	return l.Records
}

// Lost is what damage to the store has cost. It stays until AcceptLoss, since nothing tells
// whether members gave all back. nil: nothing, or it was accepted.
func (ns *Namespace) Lost() *Lost { return lostOf(ns.core.Lost()) }

// AcceptLoss ends what is said of a loss.
func (ns *Namespace) AcceptLoss() error {
	if err := ns.enter("accept what is lost"); err != nil {
		return err
	}
	defer ns.gate.leave()
	return ns.core.AcceptLoss()
}

// Repair gives a node that is not running a new store in the place of one that is damaged. What
// the database of the damaged store still reads is carried over. Each namespace is then one
// that was restored from a copy: when the node runs, syncs with the members bring back what
// they hold. The damaged files stay, in the folder "damaged" of dir.
//
// After an error, or a crash before the end, the node has the damaged store. ErrLocked: the
// node runs. ErrFileDamaged: a small file must be put right first.
func Repair(ctx context.Context, dir string, log *slog.Logger) (*Repaired, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r, err := repair(ctx, dir, log)
	if err != nil {
		return nil, fmt.Errorf("repair the store of %s: %w", dir, err)
	}
	return r, nil
}

func repair(ctx context.Context, dir string, log *slog.Logger) (*Repaired, error) {
	if _, err := os.Stat(filepath.Join(dir, restoringFile)); err == nil {
		return nil, fmt.Errorf("%w: a restore was cut short: empty the folder and restore again", ErrCorrupt)
	}
	note, err := readStoreNote(dir)
	if err != nil {
		return nil, err
	}
	from := filepath.Join(dir, note.Folder)
	switch kind, err := ondisk.KindOf(from); {
	case err != nil && !errors.Is(err, ErrCorrupt):
		return nil, err
	case err == nil && kind == "":
		return nil, fmt.Errorf("%w: there is no store in %s", ErrNotFound, dir)
	}
	next := storeNote{Folder: storeDir, Before: note.Folder, Damaged: true}
	if next.Folder == note.Folder {
		next.Folder = storeDir + "-2"
	}
	var folders []folder
	known := func() (_ map[dbadapter.NamespaceID]dbadapter.Hasher, err error) {
		// The lock is held: no node runs, and no other repair.
		if now, err := readStoreNote(dir); err != nil || now.Folder != note.Folder {
			return nil, errors.Join(err, fmt.Errorf("%w: the store was moved meanwhile", ErrLocked))
		}
		if _, err := finishMove(dir, note); err != nil {
			return nil, err
		}
		if folders, err = readFolders(dir); err != nil {
			return nil, err
		}
		return knownParts(folders), nil
	}
	out := &Repaired{}
	err = ondisk.Rescue(ctx, from, filepath.Join(dir, next.Folder), ondisk.Options{Logger: log}, known, func(r ondisk.Rescued) error {
		out.Why = r.Why
		for _, id := range r.Strange {
			out.Strange = append(out.Strange, hex.EncodeToString(id[:]))
		}
		for i := range folders {
			f := &folders[i]
			var missing []int64
			for _, keys := range f.parts() {
				missing = append(missing, r.Missing[keys.ID])
			}
			f.state.Recover()
			f.state.Lose(missing, time.Now())
			if err := f.save(); err != nil {
				return err
			}
			out.Namespaces = append(out.Namespaces, RepairedNamespace{f.state.Name, lostOf(f.state.Lost)})
		}
		err := next.write(dir)
		if now, failed := readStoreNote(dir); failed == nil && now.Folder == next.Folder {
			return nil // it may not be durable yet: then the damaged store stays
		}
		return err
	})
	if err == nil {
		err = forgetDamage(dir)
	}
	if err != nil {
		return nil, err
	}
	if out.Kept, err = finishMove(dir, next); err != nil {
		return nil, fmt.Errorf("the new store is complete, but the damaged one is not moved away yet: %w", err)
	}
	slices.SortFunc(out.Namespaces, func(a, b RepairedNamespace) int { return strings.Compare(a.Name, b.Name) })
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

// openRepaired opens a node, and repairs the store first where it cannot be opened for damage,
// or where damage was met.
func openRepaired(ctx context.Context, cfg Config) (*Node, error) {
	log := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	n, err := open(ctx, cfg)
	switch {
	case err == nil && !n.isDamaged(), err != nil && !errors.Is(err, ErrRepairable):
		return n, err
	case err == nil:
		for _, ns := range n.Namespaces() {
			_, _ = ns.Verify(ctx) // where all is whole that ends the damage, else the repair does
		}
		if !n.isDamaged() {
			return n, nil
		}
		if err := n.Close(ctx); err != nil {
			return nil, err
		}
		log.Error("the store is damaged: a new one takes its place, with what can still be read")
	default:
		log.Error("the store is damaged, and does not open: a new one takes its place, with what can still be read", logError(err))
	}
	done, err := Repair(ctx, cfg.Dir, log)
	if err != nil {
		return nil, fmt.Errorf("open the node: %w", err)
	}
	log.Warn("the damaged files are kept: remove them when nothing is missing", slog.String("dir", done.Kept))
	if done.Why != nil {
		log.Error("nothing could be carried over from the damaged store", logError(done.Why))
	}
	if len(done.Strange) > 0 {
		log.Error("sets of records of which no folder is here stay with the damaged files", slog.Any("sets", done.Strange))
	}
	for _, ns := range done.Namespaces {
		log.Error("a namespace lacks records since its store was damaged: members give back what they hold, and what this node alone has written is lost",
			slog.String("ns", ns.Name), slog.Int64("records", ns.Lost.Records), slog.Any("shards", ns.Lost.Shards))
	}
	return open(ctx, cfg)
}

// isDamaged reports whether damage of the store is known that a repair ends.
func (n *Node) isDamaged() bool {
	if n.Damage() != nil || slices.ContainsFunc(n.Unserved(), func(u Unserved) bool { return u.Why == "" }) {
		return true
	}
	return slices.ContainsFunc(n.Namespaces(), func(ns *Namespace) bool { return n.damage.of(ns.id) != nil })
}
