package peer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/node"
)

// bookFormat is the format of the address book; a program that finds another
// refuses by name.
const bookFormat = 1

// Files of one namespace, in Dir/namespaces/<id>.
const (
	namespacesDir = "namespaces"
	secretFile    = "secret"
	stateFile     = "state.cbor"
	droppedSuffix = ".dropped"
	newSuffix     = ".new"
)

func decodeState(path string, data []byte, into any) error {
	if err := node.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s: %v", ErrCorrupt, path, err)
	}
	return nil
}

func checkFormat(path string, format int) error {
	if format != bookFormat {
		return fmt.Errorf("%w: %s has format %d; this program reads %d: use the program that wrote it",
			dbadapter.ErrFormat, path, format, bookFormat)
	}
	return nil
}

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
func createState(dir string, secret dbadapter.Secret, s *node.State) error {
	final := namespaceDir(dir, dbadapter.NamespaceIDOf(secret, s.Root()))
	fresh := final + newSuffix
	if err := os.MkdirAll(fresh, durable.DirMode); err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(fresh, secretFile), []byte(hex.EncodeToString(secret[:])+"\n")); err != nil {
		return err
	}
	if err := saveState(fresh, s); err != nil {
		return err
	}
	if err := os.Rename(fresh, final); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(final))
}

func saveState(folder string, s *node.State) error {
	data, err := s.Encode()
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(folder, stateFile), data)
}

// loadState reads the folder of a namespace.
func loadState(folder string, id dbadapter.NamespaceID) (dbadapter.Secret, *node.State, error) {
	var secret dbadapter.Secret
	text, err := readPrivate(filepath.Join(folder, secretFile))
	if err != nil {
		return secret, nil, fmt.Errorf("read the namespace's secret: %w", err)
	}
	raw, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(raw) != len(secret) {
		return secret, nil, fmt.Errorf("%w: %s does not hold the secret of a namespace", ErrCorrupt, folder)
	}
	path := filepath.Join(folder, stateFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return secret, nil, fmt.Errorf("read the namespace's state: %w", err)
	}
	s, err := node.DecodeState(data)
	if err != nil {
		return secret, nil, fmt.Errorf("%s: %w", path, err)
	}
	if dbadapter.NamespaceIDOf(dbadapter.Secret(raw), s.Root()) != id {
		return secret, nil, fmt.Errorf("%w: %s does not hold the secret and the creator of namespace %x", ErrCorrupt, folder, id)
	}
	return dbadapter.Secret(raw), s, nil
}

// removeState deletes the folder of a namespace whose records are gone.
func removeState(dir string, id dbadapter.NamespaceID) error {
	folder := namespaceDir(dir, id) + droppedSuffix
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(folder))
}

// markDropped makes a drop begin: from here on it is finished by the next
// opening if this process does not get to it.
func markDropped(dir string, id dbadapter.NamespaceID) error {
	folder := namespaceDir(dir, id)
	if err := os.Rename(folder, folder+droppedSuffix); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(folder))
}
