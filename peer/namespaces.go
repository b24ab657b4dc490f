package peer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
)

// CreateNamespace makes a namespace with a fresh secret; this node is its
// first admin. The name is local: 1 to 64 letters, digits, '.', '_' or '-',
// the first a letter or digit. ErrInvalid: the name is another text, or there is
// no such placement. ErrExists: another namespace has it.
func (n *Node) CreateNamespace(ctx context.Context, name string, p Policy) (*Namespace, error) {
	secret := n.core.NewSecret()
	rule, err := p.Placement.rule()
	var s *node.State
	if err == nil {
		s, err = n.core.FoundShards(secret, name, node.Policy{Unsigned: p.Unsigned, MaxSkew: p.MaxSkew}, rule)
	}
	if err != nil {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	var ns *Namespace
	err = n.within(ctx, "create namespace "+name, func(ctx context.Context) (err error) {
		if ns, err = n.create(ctx, secret, s); err != nil || rule == nil {
			return err
		}
		// The first layout, and the shards: what fails is logged, and done by the background.
		ns.tending.Lock()
		defer ns.tending.Unlock()
		ns.tendLocked()
		return nil
	})
	return ns, err
}

// create makes a namespace whose name is free.
func (n *Node) create(ctx context.Context, secret dbadapter.Secret, s *node.State) (*Namespace, error) {
	n.changing.Lock()
	defer n.changing.Unlock()
	if _, err := n.Namespace(s.Name); !errors.Is(err, ErrNotFound) {
		return nil, ErrExists
	}
	if err := n.able(ctx); err != nil {
		return nil, err
	}
	return n.addNamespace(ctx, secret, s, false)
}

// able says why the store does not work now, if it knows.
func (n *Node) able(ctx context.Context) error {
	if store, ok := n.store.(dbadapter.Able); ok {
		return store.Able(ctx)
	}
	return nil
}

// addNamespace makes a namespace's folder and opens it, or leaves nothing but the records of
// before. had: there are such records, and after a failure the namespace is not served.
// changing is held.
func (n *Node) addNamespace(ctx context.Context, secret dbadapter.Secret, s *node.State, had bool) (ns *Namespace, err error) {
	id := dbadapter.NamespaceIDOf(secret, s.Root())
	defer func() {
		switch {
		case err == nil || !had || n.dir == "":
		case errors.Is(err, ErrCorrupt): // a repair makes it be served, as it would after a start
			n.shelve(id, folder.Namespace{Path: folder.Path(n.dir, id), Secret: secret, State: s, Owner: n.owner()}, "", err)
		default:
			n.shelveLost(id, s)
		}
	}()
	if n.dir != "" {
		if err := folder.Create(n.dir, n.owner(), secret, s); err != nil {
			return nil, err
		}
	}
	if ns, err = n.openNamespace(ctx, secret, s); err != nil {
		if !had {
			err = errors.Join(err, n.undo(id, s.Parts(secret)))
		} else if n.dir != "" && !errors.Is(err, ErrCorrupt) {
			err = errors.Join(err, os.RemoveAll(folder.Path(n.dir, id)))
		}
		return nil, err
	}
	n.insert(ns)
	ns.announce(n.host.Dialable())
	return ns, nil
}

// undo removes a new namespace that could not be opened.
func (n *Node) undo(id dbadapter.NamespaceID, parts []reconcile.Keys) error {
	if n.dir != "" {
		if err := folder.MarkDropped(n.dir, id); err != nil {
			return err
		}
	}
	return n.finishDrop(context.WithoutCancel(n.ctx), id, parts...)
}

func (n *Node) insert(ns *Namespace) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.metrics.Differences(ns.Name(), &reconcile.Report{}) // a counter is there from its beginning, so that an increase shows
	n.byName[ns.Name()] = ns
	n.byID[ns.id] = ns
	for _, keys := range ns.core.Parts() { // records that had no folder
		delete(n.unserved, hex.EncodeToString(keys.ID[:]))
	}
	for _, sh := range ns.shards() {
		sh.push(n.pushes)
	}
}

// freeName is a local name that is not taken: the one proposed, or it with the
// beginning of the id. changing is held.
func (n *Node) freeName(name string, id dbadapter.NamespaceID) string {
	hexID := hex.EncodeToString(id[:])
	for digits := 0; ; digits += 8 {
		free := name
		if digits > 0 {
			suffix := "-" + hexID[:min(digits, len(hexID))]
			free = name[:min(len(name), MaxName-len(suffix))] + suffix
		}
		if _, err := n.Namespace(free); errors.Is(err, ErrNotFound) || digits > len(hexID) {
			return free
		}
	}
}

// Namespace returns the namespace of that name, or ErrNotFound. ErrCorrupt: it is not
// served, see Unserved.
func (n *Node) Namespace(name string) (*Namespace, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if ns := n.byName[name]; ns != nil {
		return ns, nil
	}
	if u := n.unserved[name]; u != nil {
		return nil, u.notServed()
	}
	for _, u := range n.unserved {
		if u.State == nil { // it may be the one
			return nil, fmt.Errorf("namespace %q: %w; one is here whose name is not known: %v", name, ErrNotFound, u.notServed())
		}
	}
	return nil, fmt.Errorf("namespace %q: %w", name, ErrNotFound)
}

// namespaceByID returns the namespace of that id, or nil.
func (n *Node) namespaceByID(id dbadapter.NamespaceID) *Namespace {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.byID[id]
}

// Namespaces lists the namespaces by name.
func (n *Node) Namespaces() []*Namespace {
	n.mu.RLock()
	defer n.mu.RUnlock()
	out := make([]*Namespace, 0, len(n.byName))
	for _, ns := range n.byName {
		out = append(out, ns)
	}
	slices.SortFunc(out, func(a, b *Namespace) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

// DropNamespace deletes a namespace from this node: its records, its secret and its member
// list. The other members keep theirs. Calls and scans that run in it end with ErrClosed; it
// does not wait for them. A drop that was cut short is finished when the node is opened next.
// ErrHeldHere: this node may alone hold what was written here, or has set aside; ErrDenied:
// it is the last admin of other members. ErrNotHandedOver: there are other members, and this
// node may alone hold something of a shard. Once it has the role read it is no host any more,
// and hands its shards over.
func (n *Node) DropNamespace(ctx context.Context, name string) error {
	return n.dropNamespace(ctx, name, false)
}

// ForceDrop is DropNamespace also of what this node may hold alone, which is lost, and of the last
// admin of others.
func (n *Node) ForceDrop(ctx context.Context, name string) error {
	return n.dropNamespace(ctx, name, true)
}

func (n *Node) dropNamespace(ctx context.Context, name string, force bool) error {
	if !n.gate.enter() {
		return fmt.Errorf("drop namespace %s: %w", name, ErrClosed)
	}
	var ns *Namespace
	err := n.takeLeave(ctx, name, force)
	if err == nil {
		ns, err = n.drop(ctx, name, force)
	}
	go func() {
		if ns != nil { // Close waits for what still runs in the namespace
			<-ns.gate.empty
		}
		n.gate.leave()
	}()
	if err != nil {
		return fmt.Errorf("drop namespace %s: %w", name, err)
	}
	return nil
}

// drop returns the namespace once it is closed, even if it is still there.
func (n *Node) drop(ctx context.Context, name string, force bool) (*Namespace, error) {
	n.changing.Lock()
	defer n.changing.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.RLock()
	shelved := n.unserved[name]
	n.mu.RUnlock()
	if shelved != nil {
		return nil, n.dropShelved(ctx, shelved)
	}
	ns, err := n.Namespace(name)
	if err != nil {
		return nil, err
	}
	if !force {
		if err := ns.core.MayDrop(ctx); err != nil {
			return nil, err
		}
	}
	if err := ns.abandon(force); err != nil {
		return nil, err
	}
	n.mu.Lock()
	delete(n.byName, ns.Name())
	delete(n.byID, ns.id)
	n.mu.Unlock()
	// The store ends all reads of the records; a paused scan does not delay it.
	if err := ns.core.Close(); err != nil {
		return ns, err
	}
	// The drop has begun on disk, and is finished whatever becomes of ctx.
	err = n.finishDrop(context.WithoutCancel(ctx), ns.id, ns.core.Parts()...)
	return ns, errors.Join(n.met(err), n.damage.Dropped(ns.id))
}

// abandon makes a drop begin: the folder is marked, and no call may change it,
// or enter the namespace, from here on.
func (ns *Namespace) abandon(force bool) error {
	err := ns.core.Abandon(func() error {
		if !force {
			if err := ns.core.HandedOver(); err != nil {
				return err
			}
		}
		if ns.node.dir == "" {
			return nil
		}
		return folder.MarkDropped(ns.node.dir, ns.id)
	})
	if err != nil {
		return err
	}
	ns.gate.close()
	ns.cancel()
	for _, sh := range ns.shards() {
		sh.end()
	}
	return nil
}

// finishDrop deletes the records of a namespace that is being dropped, those of its
// control namespace, and then its folder.
func (n *Node) finishDrop(ctx context.Context, id dbadapter.NamespaceID, parts ...reconcile.Keys) error {
	for _, keys := range parts {
		if err := n.store.Drop(ctx, keys.ID); err != nil {
			return err
		}
	}
	if n.dir == "" {
		return nil
	}
	return folder.RemoveDropped(n.dir, id)
}

// resumeDrop finishes a drop that a process before this one has begun.
func (n *Node) resumeDrop(ctx context.Context, id dbadapter.NamespaceID) error {
	f, err := folder.Load(folder.DroppedPath(n.dir, id), id, "")
	if errors.Is(err, os.ErrNotExist) { // the folder goes after the records
		return n.finishDrop(ctx, id)
	}
	if err != nil {
		return err
	}
	return n.finishDrop(ctx, id, f.Parts()...)
}
