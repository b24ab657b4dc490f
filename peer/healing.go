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
	open := func() (dbadapter.Store, error) { return n.openDirStore(cfg) }
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
	done, failed := salvage(ctx, n.dir, n.log, keepDamaged(n.dir, n.log))
	if failed != nil {
		return nil, fmt.Errorf("%w; and it could not be repaired: %w", err, failed)
	}
	if len(done.Damage) > 0 {
		n.log.Error("damaged, and left behind", slog.Any("where", done.Damage[:min(20, len(done.Damage))]), slog.Int("places", len(done.Damage)))
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

// keepDamaged copies the files of the store of a node's folder aside. The store is locked, and
// its files are closed.
func keepDamaged(dir string, log *slog.Logger) func(store string) error {
	return func(store string) error { return copyDamaged(dir, store, log) }
}

func copyDamaged(dir, store string, log *slog.Logger) (err error) {
	to := filepath.Join(dir, damagedDir)
	if _, err := os.Stat(to); err == nil {
		log.Warn("a copy of the store from before an earlier repair is there, and no other is made beside it: remove it", slog.String("dir", to))
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
	if err := errors.Join(durable.SyncDir(fresh), os.Rename(fresh, to), durable.SyncDir(dir)); err != nil {
		return err
	}
	log.Warn("the damaged files are kept: remove them when nothing is missing", slog.String("dir", to))
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
	h := newHealing(n)
	untilDone(func() bool { return h.round(n.ctx) }, n.pause)
}

// untilDone runs rounds with growing pauses until one is the last, or a pause is cut.
func untilDone(round func() (done bool), pause func(time.Duration) bool) {
	for wait := leastHeal; !round() && pause(wait); wait = min(2*wait, mostHeal) {
	}
}

// healing is how far a node has come that repairs itself.
type healing struct {
	node *Node
	// left are the names of namespaces whose repair has ended with an error that lasts.
	left map[string]bool
	// asked are the members that were asked for what a namespace has lost; over are the
	// namespaces of which this has ended, by how many losses there were.
	asked map[*Namespace]*regaining
	over  map[*Namespace]uint64
}

func newHealing(n *Node) *healing {
	return &healing{n, map[string]bool{}, map[*Namespace]*regaining{}, map[*Namespace]uint64{}}
}

// hindered is the error of a repair that was ended by something else than the damage: a
// full disk, a store that makes a backup. It may speak of the damage, too.
type hindered struct{ error }

func (h *hindered) Unwrap() error { return h.error }

// lasts reports whether trying again would end with the same error: damage that a repair
// cannot mend.
func lasts(err error) bool {
	if _, ok := errors.AsType[*hindered](err); ok {
		return false
	}
	return errors.Is(err, ErrCorrupt)
}

// round reports whether there is nothing left to do.
func (h *healing) round(ctx context.Context) (done bool) {
	n := h.node
	done = true
	for _, u := range n.Unserved() {
		done = (u.Why != "" || h.repair(ctx, u.Name)) && done
	}
	for _, ns := range n.Namespaces() {
		if n.Damage() != nil || n.damage.of(ns.id) != nil {
			done = h.repair(ctx, ns.Name()) && done
		}
	}
	for _, ns := range n.Namespaces() { // once all are repaired: a repair is one of the whole store
		done = h.regain(ctx, ns) && done
	}
	return done
}

// repair repairs a namespace, and reports whether that is over, well or not.
func (h *healing) repair(ctx context.Context, name string) (over bool) {
	if h.left[name] {
		return true
	}
	_, err := h.node.Repair(ctx, name)
	h.left[name] = err != nil && lasts(err)
	return h.ended(ctx, name, err)
}

// ended notes how a step of the repair of a namespace has ended, and reports whether it
// need not be tried again.
func (h *healing) ended(ctx context.Context, name string, err error) (over bool) {
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, ErrClosed):
		return true
	case lasts(err):
		h.node.log.Error("damage could not be repaired", slog.String("ns", name), logError(err))
		return true
	}
	h.node.log.Warn("damage could not be repaired now, and it is tried again", slog.String("ns", name), logError(err))
	return false
}

// regain asks members for what a namespace has lost, and reports whether that is over.
func (h *healing) regain(ctx context.Context, ns *Namespace) (over bool) {
	lost, losses := ns.core.Losses()
	if last, ended := h.over[ns]; ended && last == losses || !lost.Regainable() {
		return true
	}
	of := h.asked[ns]
	if of == nil {
		of = &regaining{}
		h.asked[ns] = of
	}
	var r Repair
	err := ns.look(ctx, "take back what is lost in", func(ctx context.Context) error { return ns.regain(ctx, &r, of) })
	if err != nil {
		over = h.ended(ctx, ns.Name(), err) && (h.left[ns.Name()] || !lasts(err)) // damage that it has met the next round repairs
	} else {
		over = h.told(ns, of)
	}
	if over {
		h.over[ns] = losses // a loss that came meanwhile is asked for anew
	}
	return over
}

// told says how the asking of members has ended, and reports whether it has.
func (h *healing) told(ns *Namespace, of *regaining) (over bool) {
	lost, losses := ns.core.Losses()
	switch {
	case lost == nil:
		h.node.log.Info("what was lost is back", logNamespace(ns))
	case !lost.Regainable():
		h.node.log.Info("what members can give back of what was lost is back: end the list of the rest (syncd verify --accept-loss)",
			logNamespace(ns), slog.Int("set_aside", lost.SetAside), slog.Int("kept", lost.Kept))
	case h.askedAll(ns, of, losses):
		h.node.log.Error("each member was asked for what is lost, and what is named the members do not hold: end the list of it (syncd verify --accept-loss)", logNamespace(ns), slog.Int64("records", lostOf(lost).missing()))
	default:
		return false
	}
	return true
}

// askedAll reports whether each other member that may write was asked since a loss.
func (h *healing) askedAll(ns *Namespace, of *regaining, losses uint64) bool {
	for _, m := range ns.core.Members().Active() {
		if id := ID(m.ID); id != h.node.self.id && !of.has(id, losses) {
			return false
		}
	}
	return true
}
