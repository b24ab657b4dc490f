package node

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
)

// StateFormat is the format of a state's encoding.
const StateFormat = 1

// State is what a node keeps of a namespace beside its records and its secret:
// its name here, its policy, the members that this node knows, and the tickets
// that it has issued. It is durable before any decision rests on it.
type State struct {
	Format  int            `cbor:"1,keyasint"`
	Name    string         `cbor:"2,keyasint"`
	Creator []byte         `cbor:"3,keyasint"` // a part of what the namespace's id is made of
	Policy  storedPolicy   `cbor:"4,keyasint"`
	Members []storedMember `cbor:"5,keyasint"`
	Invites []storedInvite `cbor:"6,keyasint"`
}

type storedPolicy struct {
	Unsigned bool          `cbor:"1,keyasint"`
	MaxSkew  time.Duration `cbor:"2,keyasint"` // nanoseconds
}

func (p storedPolicy) policy() Policy { return Policy(p) }

type storedMember struct {
	ID    []byte `cbor:"1,keyasint"`
	Role  Role   `cbor:"2,keyasint"`
	Since int64  `cbor:"3,keyasint"` // Unix seconds
}

// storedInvite is a ticket that was issued here. Only the hash of its token is
// kept: the file does not let its reader join.
type storedInvite struct {
	Hash    []byte `cbor:"1,keyasint"` // SHA-256 of the token
	Role    Role   `cbor:"2,keyasint"`
	Expires int64  `cbor:"3,keyasint"` // Unix seconds
	UsedBy  []byte `cbor:"4,keyasint"` // the node that redeemed it; empty before
}

// strict refuses what this package does not write: tags, lengths left open, keys
// that are there twice.
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

// Unmarshal reads CBOR, and refuses what this package does not write: tags,
// lengths left open, keys that are there twice.
func Unmarshal(b []byte, into any) error { return strict.Unmarshal(b, into) }

// NewState is the state of a namespace that this node creates: the creator is
// its first admin.
func NewState(name string, p Policy, creator ID, now time.Time) (*State, error) {
	if err := CheckName(name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if p.MaxSkew < 0 {
		return nil, fmt.Errorf("%w: the skew %s is negative", ErrInvalid, p.MaxSkew)
	}
	if p.MaxSkew == 0 {
		p.MaxSkew = DefaultMaxSkew
	}
	s := &State{Format: StateFormat, Name: name, Creator: []byte(creator), Policy: storedPolicy(p)}
	return s, s.setMember(creator, RoleAdmin, now.Unix())
}

// Encode is the state as a driver keeps it on disk: the first bytes of the SHA-256
// of its CBOR, and the CBOR, so that a flipped bit gives no member another role.
func (s *State) Encode() ([]byte, error) {
	b, err := cbor.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return append(sum[:stateSum:stateSum], b...), nil
}

// stateSum is how many bytes of a state's hash stand before it.
const stateSum = 8

// DecodeState reads what Encode wrote. Bytes that are not a valid state are
// ErrCorrupt, another format is dbadapter.ErrFormat.
func DecodeState(b []byte) (*State, error) {
	if len(b) < stateSum {
		return nil, fmt.Errorf("%w: it has %d bytes", dbadapter.ErrCorrupt, len(b))
	}
	head, b := b[:stateSum], b[stateSum:]
	if sum := sha256.Sum256(b); !bytes.Equal(head, sum[:stateSum]) {
		return nil, fmt.Errorf("%w: its checksum does not match", dbadapter.ErrCorrupt)
	}
	s := new(State)
	if err := strict.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%w: %v", dbadapter.ErrCorrupt, err)
	}
	if s.Format != StateFormat {
		return nil, fmt.Errorf("%w: it has format %d; this program reads %d: use the program that wrote it", dbadapter.ErrFormat, s.Format, StateFormat)
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("%w: %v", dbadapter.ErrCorrupt, err)
	}
	return s, nil
}

func (s *State) validate() error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	if _, err := ID(s.Creator).PublicKey(); err != nil {
		return fmt.Errorf("the creator: %w", err)
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
		if len(i.Hash) != tokenSize || !i.Role.Valid() {
			return errors.New("a malformed ticket")
		}
	}
	return nil
}

// member checks and converts a member that was read from a file or a peer.
func (m *storedMember) member() (Member, error) {
	id := ID(m.ID)
	writer, err := id.Writer()
	if err != nil {
		return Member{}, err
	}
	if !m.Role.Valid() {
		return Member{}, fmt.Errorf("member %s: no such role: %d", id, m.Role)
	}
	return Member{ID: id, Role: m.Role, Writer: writer, Since: time.Unix(m.Since, 0).UTC()}, nil
}

// clone copies the state so deeply that changing lists and entries of the copy
// leaves s alone.
func (s *State) clone() *State {
	c := *s
	c.Members = slices.Clone(s.Members)
	c.Invites = slices.Clone(s.Invites)
	return &c
}

// setMember adds a member or changes its role.
func (s *State) setMember(id ID, role Role, since int64) error {
	if i := s.find(id); i >= 0 {
		s.Members[i].Role = role
		return nil
	}
	if len(s.Members) >= MaxMembers {
		return fmt.Errorf("%w: a namespace has at most %d members", dbadapter.ErrLimit, MaxMembers)
	}
	s.Members = append(s.Members, storedMember{[]byte(id), role, since})
	return nil
}

// find is where a member stands in the list, or −1.
func (s *State) find(id ID) int {
	return slices.IndexFunc(s.Members, func(m storedMember) bool { return string(m.ID) == string(id) })
}

// CheckName is the rule for local names: they appear in URLs and on command
// lines.
func CheckName(name string) error {
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
