package peer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
)

// stateFormat is the format of the files that this file and the address book
// write; a program that finds another refuses by name.
const stateFormat = 1

// Files of one namespace, in Dir/namespaces/<id>.
const (
	namespacesDir = "namespaces"
	secretFile    = "secret"
	stateFile     = "state.cbor"
	droppedSuffix = ".dropped"
	newSuffix     = ".new"
)

// state is what a node keeps of a namespace beside its records and its secret.
type state struct {
	Format  int           `cbor:"1,keyasint"`
	Name    string        `cbor:"2,keyasint"`
	Policy  statePolicy   `cbor:"3,keyasint"`
	Members []stateMember `cbor:"4,keyasint"`
	Invites []stateInvite `cbor:"5,keyasint"`
}

type statePolicy struct {
	Unsigned bool          `cbor:"1,keyasint"`
	MaxSkew  time.Duration `cbor:"2,keyasint"` // nanoseconds
}

type stateMember struct {
	ID    []byte `cbor:"1,keyasint"`
	Role  Role   `cbor:"2,keyasint"`
	Since int64  `cbor:"3,keyasint"` // Unix seconds
}

// stateInvite is a ticket that was made here. Only the hash of its token is
// kept: who reads the file cannot join with it.
type stateInvite struct {
	Hash    []byte `cbor:"1,keyasint"` // SHA-256 of the token
	Role    Role   `cbor:"2,keyasint"`
	Expires int64  `cbor:"3,keyasint"` // Unix seconds
	UsedBy  []byte `cbor:"4,keyasint"` // who redeemed it, empty while nobody has
}

// strict refuses what a careful writer would not have written.
var strict = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxArrayElements: 1 << 15,
		MaxMapPairs:      1 << 10,
		MaxNestedLevels:  8,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return mode
}()

func decodeState(path string, data []byte, into any) error {
	if err := strict.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s: %v", ErrCorrupt, path, err)
	}
	return nil
}

func checkFormat(path string, format int) error {
	if format != stateFormat {
		return fmt.Errorf("%w: %s has format %d; this program reads %d: use the program that wrote it",
			dbadapter.ErrFormat, path, format, stateFormat)
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
			return nil, nil, fmt.Errorf("%s holds %q, which is no namespace: move it away", dir, name)
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
func createState(dir string, secret dbadapter.Secret, s *state) error {
	final := namespaceDir(dir, dbadapter.NamespaceIDOf(secret))
	fresh := final + newSuffix
	if err := os.MkdirAll(fresh, dirMode); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(fresh, secretFile), []byte(hex.EncodeToString(secret[:])+"\n")); err != nil {
		return err
	}
	if err := saveState(fresh, s); err != nil {
		return err
	}
	if err := os.Rename(fresh, final); err != nil {
		return err
	}
	return syncDir(filepath.Dir(final))
}

func saveState(folder string, s *state) error {
	data, err := cbor.Marshal(s)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, stateFile), data)
}

// loadState reads the folder of a namespace.
func loadState(dir string, id dbadapter.NamespaceID) (dbadapter.Secret, *state, error) {
	folder := namespaceDir(dir, id)
	var secret dbadapter.Secret
	text, err := readPrivate(filepath.Join(folder, secretFile))
	if err != nil {
		return secret, nil, fmt.Errorf("read the namespace's secret: %w", err)
	}
	raw, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(raw) != len(secret) || dbadapter.NamespaceIDOf(dbadapter.Secret(raw)) != id {
		return secret, nil, fmt.Errorf("%w: %s does not hold the secret of namespace %x", ErrCorrupt, folder, id)
	}
	path := filepath.Join(folder, stateFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return secret, nil, fmt.Errorf("read the namespace's members: %w", err)
	}
	s := new(state)
	if err := decodeState(path, data, s); err != nil {
		return secret, nil, err
	}
	if err := checkFormat(path, s.Format); err != nil {
		return secret, nil, err
	}
	if err := s.validate(); err != nil {
		return secret, nil, fmt.Errorf("%w: %s: %v", ErrCorrupt, path, err)
	}
	return dbadapter.Secret(raw), s, nil
}

// removeState deletes the folder of a namespace whose records are gone.
func removeState(dir string, id dbadapter.NamespaceID) error {
	folder := namespaceDir(dir, id) + droppedSuffix
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return syncDir(filepath.Dir(folder))
}

// markDropped makes a drop begin: from here on it is finished by the next
// opening if this process does not get to it.
func markDropped(dir string, id dbadapter.NamespaceID) error {
	folder := namespaceDir(dir, id)
	if err := os.Rename(folder, folder+droppedSuffix); err != nil {
		return err
	}
	return syncDir(filepath.Dir(folder))
}

func (s *state) validate() error {
	if err := checkName(s.Name); err != nil {
		return err
	}
	if s.Policy.MaxSkew <= 0 {
		return errors.New("a skew of zero")
	}
	if len(s.Members) > MaxMembers || len(s.Invites) > MaxInvites {
		return errors.New("too many members or tickets")
	}
	for _, m := range s.Members {
		if _, err := m.member(); err != nil {
			return err
		}
	}
	for _, i := range s.Invites {
		if len(i.Hash) != tokenSize || !i.Role.valid() {
			return errors.New("a ticket")
		}
	}
	return nil
}

// member checks and converts a member that was read from a file or a peer.
func (m *stateMember) member() (Member, error) {
	id, err := peer.IDFromBytes(m.ID)
	if err != nil {
		return Member{}, fmt.Errorf("a member's id: %w", err)
	}
	writer, err := writerOf(id)
	if err != nil {
		return Member{}, err
	}
	if !m.Role.valid() {
		return Member{}, fmt.Errorf("member %s: no such role: %d", id, m.Role)
	}
	return Member{ID: id, Role: m.Role, Writer: writer, Since: time.Unix(m.Since, 0).UTC()}, nil
}

// clone copies the state deeply enough that changing lists and entries of the
// copy leaves s alone.
func (s *state) clone() *state {
	c := *s
	c.Members = slices.Clone(s.Members)
	c.Invites = slices.Clone(s.Invites)
	return &c
}

// checkName is the rule for local names: they appear in URLs and on command
// lines.
func checkName(name string) error {
	alnum := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
	ok := len(name) >= 1 && len(name) <= MaxName && alnum(name[0])
	for i := range len(name) {
		ok = ok && (alnum(name[i]) || strings.IndexByte("._-", name[i]) >= 0)
	}
	if !ok {
		return fmt.Errorf("namespace name %q: want 1 to %d letters, digits, '.', '_' or '-', the first a letter or digit", name, MaxName)
	}
	return nil
}
