package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/durable"
)

// damagedDir is, in a node's folder, the copy of the files of the store from before the
// first repair by the node itself. It stays until a person removes it, and while it is
// there no other is made: what damage comes later cannot fill the disk.
const damagedDir = "damaged"

// openMended opens the node's own store. Where it is too damaged to be opened, a node that
// repairs makes it anew first.
func (n *Node) openMended(ctx context.Context, cfg *Config) (dbadapter.Store, error) {
	n.repairs = cfg.Repair
	open := func() (dbadapter.Store, error) { return n.openDirStore(cfg.StoreKind, cfg.memory()/4, cfg.WatchLog) }
	store, err := open()
	if !cfg.Repair || !errors.Is(err, ErrSalvageable) {
		return store, err
	}
	if mended, failed := n.mendStamp(); failed != nil {
		return nil, fmt.Errorf("%w; and it could not be repaired: %w", err, failed)
	} else if mended { // the files themselves may be sound, and then nothing of them is thrown away
		n.log.Warn("a byte of the stamp of the store was damaged, and is put right", logError(err))
		if store, err = open(); !errors.Is(err, ErrSalvageable) {
			return store, err
		}
	}
	n.log.Error("the store is damaged: its files are made anew without what is", logError(err))
	done, failed := salvage(ctx, n.dir, n.log, n.keepDamaged)
	if failed != nil {
		return nil, fmt.Errorf("%w; and it could not be repaired: %w", err, failed)
	}
	for _, where := range done.Damage {
		n.log.Error("damaged, and left behind", slog.String("where", where))
	}
	for _, ns := range done.Namespaces {
		if l := ns.Lost; l != nil {
			n.log.Error("a namespace lacks records since damage was repaired: members give back what they hold, and what this node alone has written is lost",
				slog.String("ns", ns.Name), slog.Int64("records", l.missing()), slog.Int("set_aside", l.SetAside), slog.Int("kept", l.Kept), slog.Bool("older", l.Older))
		}
	}
	return open()
}

// mendStamp mends the file that says what the others of the store are.
func (n *Node) mendStamp() (mended bool, err error) {
	note, err := readStoreNote(n.dir)
	if err != nil {
		return false, err
	}
	return ondisk.MendStamp(filepath.Join(n.dir, note.Folder))
}

// keepDamaged copies the files of the store aside. The store is locked, and its files are
// closed.
func (n *Node) keepDamaged(store string) (err error) {
	to := filepath.Join(n.dir, damagedDir)
	if _, err := os.Stat(to); err == nil {
		n.log.Warn("a copy of the store from before an earlier repair is there, and no other is made beside it: remove it", slog.String("dir", to))
		return nil
	}
	fresh := to + ".new"
	if err := errors.Join(os.RemoveAll(fresh), os.MkdirAll(fresh, durable.DirMode)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(fresh)) // half a copy takes up room for nothing
		}
	}()
	files, err := os.ReadDir(store)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !f.Type().IsRegular() {
			continue // what an earlier repair has begun
		}
		if err := keepFile(filepath.Join(store, f.Name()), filepath.Join(fresh, f.Name())); err != nil {
			return fmt.Errorf("keep a copy of the damaged store: %w", err)
		}
	}
	if err := errors.Join(durable.SyncDir(fresh), os.Rename(fresh, to), durable.SyncDir(n.dir)); err != nil {
		return err
	}
	n.log.Warn("the damaged files are kept: remove them when nothing is missing", slog.String("dir", to))
	return nil
}

// keepFile gives a table, which is never written again, a second name, and copies another
// file.
func keepFile(from, to string) error {
	if filepath.Ext(from) == ".sst" && os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, durable.FileMode)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// How long a node that repairs waits before it asks the members again for what is missing.
const (
	leastHeal = 5 * time.Second
	mostHeal  = 10 * time.Minute
)

// heals repairs what the opening has met of damage, and asks members for what is missing,
// until it is there, or each other member that may write was asked.
func (n *Node) heals() {
	defer n.gate.leave()
	for wait := leastHeal; !n.heal(n.ctx) && n.pause(wait); wait = min(2*wait, mostHeal) {
	}
}

// heal reports whether there is nothing left to do.
func (n *Node) heal(ctx context.Context) (done bool) {
	done = true
	failed := func(name string, err error) {
		if ctx.Err() == nil {
			n.log.Error("damage could not be repaired", slog.String("ns", name), logError(err))
		}
	}
	for _, u := range n.Unserved() {
		if _, err := n.Repair(ctx, u.Name); err != nil {
			failed(u.Name, err) // trying again would find the same
		}
	}
	for _, ns := range n.Namespaces() {
		if n.Damage() != nil || n.damage.of(ns.id) != nil {
			if _, err := ns.Repair(ctx); err != nil {
				failed(ns.Name(), err)
			}
		}
		if ns.Lost() == nil {
			continue
		}
		var r Repair
		if err := ns.look(ctx, "take back what is lost in", func(ctx context.Context) error { return ns.regain(ctx, &r) }); err != nil {
			failed(ns.Name(), err)
			continue
		}
		others := 0
		for _, m := range ns.core.Members().Active() {
			if ID(m.ID) != n.self.id {
				others++
			}
		}
		switch lost := ns.Lost(); {
		case lost == nil:
			n.log.Info("what was lost is back", logNamespace(ns), slog.Int64("records", r.Regained))
		case len(r.From) == others:
			n.log.Error("each member was asked for what is lost, and what is named the members do not hold: end the list of it (syncd verify --accept-loss)", logNamespace(ns), slog.Int64("records", lost.missing()))
		default:
			done = false
		}
	}
	return done
}
