package peer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// Unserved is a namespace that could not be opened for damage to its records: calls
// that name it end with ErrCorrupt, syncs of it are denied, and the others are served.
type Unserved struct {
	Name, ID string
	// Damage is what was met of it.
	Damage *Damage
}

// unserved is such a namespace.
type unserved struct {
	folder
	id  dbadapter.NamespaceID
	err error // why it could not be opened
}

// shelve keeps a namespace that could not be opened.
func (n *Node) shelve(id dbadapter.NamespaceID, secret dbadapter.Secret, s *node.State, err error) {
	n.log.Error("a namespace is damaged, and is not served: keep a copy of the data directory, then run syncd verify --repair", slog.String("ns", s.Name), logError(err))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unserved[s.Name] = &unserved{folder{namespaceDir(n.dir, id), secret, s}, id, err}
}

// Unserved lists the namespaces that are not served, by name. Repair makes them be.
func (n *Node) Unserved() []Unserved {
	var out []Unserved
	for _, u := range n.shelved() {
		out = append(out, Unserved{u.state.Name, hex.EncodeToString(u.id[:]), n.damage.of(u.id)})
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
	slices.SortFunc(out, func(a, b *unserved) int { return strings.Compare(a.state.Name, b.state.Name) })
	return out
}

// notServed is the error of a call that names the namespace.
func (u *unserved) notServed() error {
	return fmt.Errorf("namespace %q is not served: %w", u.state.Name, u.err)
}

// Repair repairs a namespace by its name, as Namespace.Repair does, also one that is not
// served, which is from then on.
func (n *Node) Repair(ctx context.Context, name string) (r Repair, err error) {
	n.mu.RLock()
	u := n.unserved[name]
	n.mu.RUnlock()
	var damage []string
	if u != nil {
		if !n.gate.enter() {
			return r, fmt.Errorf("repair %s: %w", name, ErrClosed)
		}
		damage, err = n.salvage(ctx, u.err)
		n.gate.leave()
		if err != nil {
			return r, fmt.Errorf("repair %s: %w", name, err)
		}
	}
	ns, err := n.Namespace(name)
	if err != nil {
		return r, fmt.Errorf("repair %s: %w", name, err)
	}
	r, err = ns.Repair(ctx)
	r.Damage = append(damage, r.Damage...)
	return r, err
}

// mayLack makes a namespace that is not served one that was restored from a copy,
// durably, before its store is salvaged.
func (u *unserved) mayLack() error {
	u.state.Recover()
	return saveState(u.path, u.state)
}

// serveAgain opens the namespaces that were not served, after a salvage; changing is held.
func (n *Node) serveAgain(ctx context.Context, done *dbadapter.Salvaged) (failed error) {
	for _, u := range n.shelved() {
		data, control := lossesOf(u.parts(), done)
		u.state.Lose(data, control, done.Older, time.Now())
		if err := saveState(u.path, u.state); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		ns, err := n.openAgain(ctx, u.secret, u.state)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		ns.logLost(&data, &control, done.Older)
		n.mu.Lock()
		delete(n.unserved, u.state.Name)
		n.mu.Unlock()
		n.insert(ns)
		n.log.Info("the namespace is served again", logNamespace(ns))
	}
	return failed
}

// dropShelved drops a namespace that is not served; changing is held.
func (n *Node) dropShelved(ctx context.Context, u *unserved) error {
	if err := markDropped(n.dir, u.id); err != nil {
		return err
	}
	n.mu.Lock()
	delete(n.unserved, u.state.Name)
	n.mu.Unlock()
	err := n.finishDrop(context.WithoutCancel(ctx), u.id, u.parts()...)
	return errors.Join(n.met(err), n.damage.dropped(u.id))
}
