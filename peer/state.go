package peer

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

// Files of one namespace, in Dir/namespaces/<id>.
const (
	namespacesDir = "namespaces"
	secretFile    = "secret"
	stateFile     = "state.cbor"
	droppedSuffix = ".dropped"
	newSuffix     = ".new"
)

// namespaceDirs finds the namespaces in a folder. It clears away those that
// were being made, and returns those that were being dropped, for the caller to
// finish.
func namespaceDirs(dir string) (ids, dropped []dbadapter.NamespaceID, err error) {
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
		id, err := parseNamespaceID(strings.TrimSuffix(name, droppedSuffix))
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%s holds %q, which is not the folder of a namespace: move it away", dir, name)
		case strings.HasSuffix(name, droppedSuffix):
			dropped = append(dropped, id)
		default:
			ids = append(ids, id)
		}
	}
	return ids, dropped, nil
}

func parseNamespaceID(s string) (dbadapter.NamespaceID, error) {
	var id dbadapter.NamespaceID
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("namespace id %q: want %d hexadecimal digits", s, 2*len(id))
	}
	return dbadapter.NamespaceID(b), nil
}

func namespaceDir(dir string, id dbadapter.NamespaceID) string {
	return filepath.Join(dir, namespacesDir, hex.EncodeToString(id[:]))
}

// createState makes the folder of a namespace, whole or not at all.
func createState(dir, owner string, secret dbadapter.Secret, s *node.State) (err error) {
	final := namespaceDir(dir, dbadapter.NamespaceIDOf(secret, s.Root()))
	fresh := final + newSuffix
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(fresh))
		}
	}()
	if err := os.MkdirAll(fresh, durable.DirMode); err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(fresh, secretFile), []byte(hex.EncodeToString(secret[:])+"\n")); err != nil {
		return err
	}
	if err := saveState(fresh, owner, s); err != nil {
		return err
	}
	if err := os.Rename(fresh, final); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(final))
}

// stateFileIn is the state in the folder of a namespace.
func stateFileIn(folder, owner string) durable.File {
	return durable.File{Path: filepath.Join(folder, stateFile), Kind: "state", Owner: owner}
}

func saveState(folder, owner string, s *node.State) error {
	data, err := s.Encode()
	if err != nil {
		return err
	}
	return stateFileIn(folder, owner).Save(data)
}

// folder is that of a namespace.
type folder struct {
	path   string
	secret dbadapter.Secret
	state  *node.State // nil: it cannot be used
	owner  string      // the node that the state is of; empty: the state does not say it yet
}

// parts are the keys of the namespace's sets, and then of its control namespace.
func (f *folder) parts() []reconcile.Keys { return f.state.Parts(f.secret) }

func (f *folder) save() error { return saveState(f.path, f.owner, f.state) }

// lostNamespace is what to do where the folder of a namespace cannot be used.
const lostNamespace = "put back the copy from a backup, or join the namespace again with a ticket (syncd join): its records stay"

// loadState reads the folder of a namespace, which must be that of the node given, if one
// is. Beside an error the state may be there.
func loadState(path string, id dbadapter.NamespaceID, owner string) (folder, error) {
	f := folder{path: path}
	state := stateFileIn(path, owner)
	data, of, err := state.Load()
	if err == nil {
		f.owner = of
		if f.state, err = node.DecodeState(data); errors.Is(err, ErrCorrupt) {
			err = durable.Damaged(state.Path, "is damaged (%v)", err)
		}
	}
	if err != nil {
		return f, durable.Unusable(state.Path, err, lostNamespace)
	}
	secret := filepath.Join(path, secretFile)
	text, err := durable.ReadPrivate(secret)
	if err != nil {
		return f, durable.Unusable(secret, err, lostNamespace)
	}
	raw, err := hex.DecodeString(strings.TrimSuffix(string(text), "\n"))
	if err != nil || len(raw) != len(f.secret) {
		return f, durable.Damaged(secret, "is damaged: %s", lostNamespace)
	}
	f.secret = dbadapter.Secret(raw)
	if dbadapter.NamespaceIDOf(f.secret, f.state.Root()) != id {
		f.state = nil // it may be another namespace's
		return f, durable.Damaged(secret, "is not that of the namespace, or the state beside it is another's: %s", lostNamespace)
	}
	return f, nil
}

// removeState deletes the folder of a namespace whose records are gone.
func removeState(dir string, id dbadapter.NamespaceID) error {
	folder := namespaceDir(dir, id) + droppedSuffix
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(folder))
}

// markDropped makes a drop begin. From here on the next opening finishes it if this
// process does not.
func markDropped(dir string, id dbadapter.NamespaceID) error {
	folder := namespaceDir(dir, id)
	if err := os.Rename(folder, folder+droppedSuffix); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(folder))
}
