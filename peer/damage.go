package peer

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/damage"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/node"
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
