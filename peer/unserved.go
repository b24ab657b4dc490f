package peer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/status"
)

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
