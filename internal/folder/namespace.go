package folder

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
)

// Files of one namespace, in namespaces/ID.
const (
	SecretFile = "secret"
	StateFile  = "state.cbor"

	droppedSuffix = ".dropped"
	newSuffix     = ".new"
)

// List finds the namespaces of a node. It clears away those that were being made, and returns
// those that were being dropped, for the caller to finish.
func List(dir string) (ids, dropped []dbadapter.NamespaceID, err error) {
	dir = filepath.Join(dir, namespacesDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if strings.Contains(name, durable.AsideSuffix) {
			continue
		}
		if strings.HasSuffix(name, newSuffix) {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return nil, nil, err
			}
			continue
		}
		var id dbadapter.NamespaceID
		b, err := hex.DecodeString(strings.TrimSuffix(name, droppedSuffix))
		switch copy(id[:], b); {
		case err != nil || len(b) != len(id):
			return nil, nil, fmt.Errorf("%s holds %q, which is not the folder of a namespace: move it away", dir, name)
		case strings.HasSuffix(name, droppedSuffix):
			dropped = append(dropped, id)
		default:
			ids = append(ids, id)
		}
	}
	return ids, dropped, nil
}

// Path is the folder of a namespace.
func Path(dir string, id dbadapter.NamespaceID) string {
	return filepath.Join(dir, namespacesDir, hex.EncodeToString(id[:]))
}

// DroppedPath is Path of a namespace that is being dropped.
func DroppedPath(dir string, id dbadapter.NamespaceID) string { return Path(dir, id) + droppedSuffix }

// Create makes the folder of a namespace, whole or not at all.
func Create(dir, owner string, secret dbadapter.Secret, s *node.State) (err error) {
	final := Path(dir, dbadapter.NamespaceIDOf(secret, s.Root()))
	if err := os.MkdirAll(filepath.Dir(final), durable.DirMode); err != nil {
		return err
	}
	if err := durable.SyncDir(dir); err != nil {
		return err
	}
	fresh := final + newSuffix
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(fresh))
		}
	}()
	if err := os.MkdirAll(fresh, durable.DirMode); err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(fresh, SecretFile), []byte(hex.EncodeToString(secret[:])+"\n")); err != nil {
		return err
	}
	if err := SaveState(fresh, owner, s); err != nil {
		return err
	}
	if err := os.Rename(fresh, final); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(final))
}

// stateIn is the state in the folder of a namespace.
func stateIn(path, owner string) durable.File {
	return durable.File{Path: filepath.Join(path, StateFile), Kind: "state", Owner: owner}
}

// SaveState replaces the state in the folder of a namespace, as the owner's.
func SaveState(path, owner string, s *node.State) error {
	data, err := s.Encode()
	if err != nil {
		return err
	}
	return stateIn(path, owner).Save(data)
}

// Namespace is what the folder of a namespace says.
type Namespace struct {
	Path   string
	Secret dbadapter.Secret
	State  *node.State // nil: it cannot be used
	Owner  string      // the node that the state is of; empty: the state does not say it yet
}

// Parts are the keys of the namespace's sets, and then of its control namespace.
func (n *Namespace) Parts() []reconcile.Keys { return n.State.Parts(n.Secret) }

// Save replaces the state.
func (n *Namespace) Save() error { return SaveState(n.Path, n.Owner, n.State) }

// PutBack is what to do where the folder of a namespace cannot be used.
const PutBack = "put back the copy from a backup, or join the namespace again with a ticket (syncd join): its records stay"

// LoadAll reads the folders of all namespaces of a node, but for those that are being dropped.
func LoadAll(dir string) (all []Namespace, err error) {
	ids, _, err := List(dir)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		n, err := Load(Path(dir, id), id, "")
		if err != nil {
			return nil, fmt.Errorf("namespace %x: %w", id, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// Load reads the folder of a namespace, which must be that of the node given, if one
// is. Beside an error the state may be there.
func Load(path string, id dbadapter.NamespaceID, owner string) (Namespace, error) {
	n := Namespace{Path: path}
	state := stateIn(path, owner)
	data, of, err := state.Load()
	if err == nil {
		n.Owner = of
		if n.State, err = node.DecodeState(data); errors.Is(err, dbadapter.ErrCorrupt) {
			err = durable.Damaged(state.Path, "is damaged (%v)", err)
		}
	}
	if err != nil {
		return n, durable.Unusable(state.Path, err, PutBack)
	}
	secret := filepath.Join(path, SecretFile)
	text, err := durable.ReadPrivate(secret)
	if err != nil {
		return n, durable.Unusable(secret, err, PutBack)
	}
	raw, err := hex.DecodeString(strings.TrimSuffix(string(text), "\n"))
	if err != nil || len(raw) != len(n.Secret) {
		return n, durable.Damaged(secret, "is damaged: %s", PutBack)
	}
	n.Secret = dbadapter.Secret(raw)
	if dbadapter.NamespaceIDOf(n.Secret, n.State.Root()) != id {
		n.State = nil // it may be another namespace's
		return n, durable.Damaged(secret, "is not that of the namespace, or the state beside it is another's: %s", PutBack)
	}
	return n, nil
}

// RemoveDropped deletes the folder of a namespace whose records are gone.
func RemoveDropped(dir string, id dbadapter.NamespaceID) error {
	path := DroppedPath(dir, id)
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// MarkDropped makes a drop begin. From here on the next opening finishes it if this
// process does not.
func MarkDropped(dir string, id dbadapter.NamespaceID) error {
	path := Path(dir, id)
	if err := os.Rename(path, DroppedPath(dir, id)); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}
