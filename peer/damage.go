package peer

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/damage"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
)

// Damage is what was met of damage that cannot be told to be a namespace's: in files
// that were read through, and in compactions. It stays until the files, and all
// namespaces, were verified since. nil: the node has met no such damage.
func (n *Node) Damage() *status.Damage { return n.damage.Of(dbadapter.NamespaceID{}) }

// Troubles are the states in which the node cannot do its work now, some seconds old at
// most; none: it can.
func (n *Node) Troubles() []status.Trouble { return n.health.Troubles() }

// met notes damage that cannot be told to be a namespace's, and returns it.
func (n *Node) met(err error) error { return n.damage.Met(dbadapter.NamespaceID{}, "", err) }

// openDamage makes the book and the health, which the opening of the store gives errors to.
func (n *Node) openDamage() {
	n.damage = damage.NewBook(n.log, n.now, n.soon)
	n.health = damage.NewHealth(damage.Node{Log: n.log, Now: n.now, Able: n.able, Unserved: n.Unserved, Namespaces: func() (all []damage.Namespace) {
		for _, ns := range n.Namespaces() {
			recovers := ns.core.Rule() == nil && ns.core.Outside() == nil && slices.ContainsFunc(ns.core.Sets(), (*node.Set).Recovers)
			all = append(all, damage.Namespace{ID: ns.id, Name: ns.Name(), Recovers: recovers})
		}
		return all
	}}, n.damage)
}

// bookDamage takes up what was met of damage before. The store is locked.
func (n *Node) bookDamage(context.Context, *Config) error {
	if n.dir == "" {
		return nil
	}
	file := durable.File{Path: filepath.Join(n.dir, folder.DamageFile), Kind: "damage", Owner: n.expected()}
	lost := n.damage.Load(file, n.owner())
	n.onClose(n.damage.Close)
	err := folder.SetAside(n.log, file.Path, lost, "what was met of damage is not known")
	if err == nil && lost != nil { // until it is shown that there is none
		_ = n.met(fmt.Errorf("%w: perhaps; what was met of it before is not known", ErrCorrupt))
	}
	return err
}

// watch opens the records of a namespace, and its control namespace. Each error of
// theirs that speaks of damage is taken into the book, whatever has met it.
func (n *Node) watch(id dbadapter.NamespaceID, name string) node.OpenStore {
	met := func(err error) error {
		n.health.Hint(err)
		return n.damage.Met(id, name, err)
	}
	return func(ctx context.Context, part dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
		store, err := n.store.Namespace(ctx, part, h, observe)
		if err != nil {
			return nil, met(err)
		}
		return damage.Watched(store, met), nil
	}
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
	done, err := offline.Repair(ctx, cfg.Dir, log)
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
	if n.Damage() != nil || slices.ContainsFunc(n.Unserved(), func(u status.Unserved) bool { return u.Why == "" }) {
		return true
	}
	return slices.ContainsFunc(n.Namespaces(), func(ns *Namespace) bool { return n.damage.Of(ns.id) != nil })
}

// Lost is what damage to the store has cost. It stays until AcceptLoss, since nothing tells
// whether members gave all back. nil: nothing, or it was accepted.
func (ns *Namespace) Lost() *status.Lost { return ns.core.Lost().Status() }

// AcceptLoss ends what is said of a loss.
func (ns *Namespace) AcceptLoss() error {
	return ns.within(context.Background(), "accept what is lost of", func(context.Context) error { return ns.core.AcceptLoss() })
}

// unserved is such a namespace.
type unserved struct {
	folder.Namespace
	id    dbadapter.NamespaceID
	name  string
	err   error  // why it could not be opened
	files string // that text, if it is for its folder: there is nothing to repair
}

// shelve keeps a namespace that could not be opened; files is not empty if it is for its
// folder.
func (n *Node) shelve(id dbadapter.NamespaceID, f folder.Namespace, files string, err error) {
	u := &unserved{f, id, hex.EncodeToString(id[:]), err, files}
	if f.State != nil {
		u.name = n.freeName(f.State.Name, id)
	}
	todo := ""
	if files == "" {
		todo = ": stop the daemon, then run syncd verify --repair"
	}
	n.log.Error("a namespace is damaged, and is not served"+todo, slog.String("ns", u.name), logError(err))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unserved[u.name] = u
}

// Unserved lists the namespaces that are not served, by name.
func (n *Node) Unserved() []status.Unserved {
	out := []status.Unserved{}
	for _, u := range n.shelved() {
		out = append(out, status.Unserved{Name: u.name, ID: hex.EncodeToString(u.id[:]), Damage: n.damage.Of(u.id), Why: u.files})
	}
	return out
}

func (n *Node) shelved() []*unserved {
	n.mu.RLock()
	defer n.mu.RUnlock()
	out := make([]*unserved, 0, len(n.unserved))
	for _, u := range n.unserved {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b *unserved) int { return strings.Compare(a.name, b.name) })
	return out
}

// notServed is the error of a call that names the namespace.
func (u *unserved) notServed() error {
	return fmt.Errorf("namespace %q is not served: %w", u.name, u.err)
}

// clearAway sets the folder of a namespace aside that cannot be used, so that the namespace
// can be joined again; changing is held.
func (n *Node) clearAway(u *unserved) error {
	to, err := durable.SetAside(u.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n.log.Warn("the folder of a namespace is set aside: the namespace is joined again, and its records stay", slog.String("kept", to), slog.String("ns", u.name), logError(u.err))
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.unserved, u.name)
	return nil
}

// dropShelved drops a namespace that is not served; changing is held.
func (n *Node) dropShelved(ctx context.Context, u *unserved) error {
	if u.files != "" { // which of the records are its own is not known
		return u.notServed()
	}
	if err := folder.MarkDropped(n.dir, u.id); err != nil {
		return err
	}
	n.mu.Lock()
	delete(n.unserved, u.name)
	n.mu.Unlock()
	err := n.finishDrop(context.WithoutCancel(ctx), u.id, u.Parts()...)
	return errors.Join(n.met(err), n.damage.Dropped(u.id))
}

// missing warns of files of a namespace that was open before.
func (n *Node) missing(f *folder.Namespace) {
	for _, name := range []string{folder.ListFile, folder.ProofsFile} {
		_, err := os.Stat(filepath.Join(f.Path, name))
		if errors.Is(err, fs.ErrNotExist) && len(f.State.Logs) > 0 && !f.State.Sharded() {
			n.log.Warn("a file is missing, and made anew", slog.String("ns", f.State.Name), slog.String("file", filepath.Join(f.Path, name)))
		}
	}
}

// setsInStore lists the sets of records in the store; none where it cannot tell.
func (n *Node) setsInStore(ctx context.Context) ([]dbadapter.NamespaceID, error) {
	if store, ok := n.store.(dbadapter.Lister); ok {
		return store.List(ctx)
	}
	return nil, nil
}

// shelveOrphans keeps the sets in the store that are of none of the namespaces. Nothing
// tells which ones are the list of members of another.
func (n *Node) shelveOrphans(ctx context.Context, folders []folder.Namespace) error {
	sets, err := n.setsInStore(ctx)
	own := map[dbadapter.NamespaceID]bool{}
	for _, f := range folders {
		if f.State == nil || f.Secret == (dbadapter.Secret{}) || f.State.Sharded() { // which sets are its own is not known
			return err
		}
		for _, keys := range f.Parts() {
			own[keys.ID] = true
		}
	}
	for _, id := range sets {
		if !own[id] {
			n.shelveLost(id, nil)
		}
	}
	return err
}

// shelveLost keeps a namespace whose records have no folder.
func (n *Node) shelveLost(id dbadapter.NamespaceID, s *node.State) {
	path := folder.Path(n.dir, id)
	err := durable.Damaged(path, "is missing, and the store has records of a namespace that has no folder: %s", folder.PutBack)
	n.shelve(id, folder.Namespace{Path: path, State: s}, err.Error(), err)
}
