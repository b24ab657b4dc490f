package peer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
)

// ID names a node: a hash of its public key, as libp2p writes it.
type ID = peer.ID

// ParseID reads the text form of an ID (12D3Koo…).
func ParseID(s string) (ID, error) {
	id, err := peer.Decode(s)
	if err != nil {
		return "", fmt.Errorf("peer id %q: %w", s, err)
	}
	return id, nil
}

// Role is what a member may do. Each role may do what those before it may.
type Role uint8

// The roles of a member.
const (
	// RoleRead may receive the records.
	RoleRead Role = iota + 1
	// RoleWrite may write records that the other members accept.
	RoleWrite
	// RoleAdmin may invite members.
	RoleAdmin
)

var roleNames = [...]string{RoleRead: "read", RoleWrite: "write", RoleAdmin: "admin"}

// String is the role's name, "read", "write" or "admin".
func (r Role) String() string {
	if r.valid() {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

func (r Role) valid() bool { return r >= RoleRead && r <= RoleAdmin }

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	for r := RoleRead; r <= RoleAdmin; r++ {
		if roleNames[r] == s {
			return r, nil
		}
	}
	return 0, fmt.Errorf("role %q: want read, write or admin", s)
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a role's name.
func (r *Role) UnmarshalText(b []byte) error {
	role, err := ParseRole(string(b))
	*r = role
	return err
}

// Member is a node that this node deals with in a namespace.
type Member struct {
	ID   ID
	Role Role
	// Writer is the id under which versions name the node.
	Writer dbadapter.WriterID
	Since  time.Time
}

// Members lists the nodes that this node deals with here, itself included, by
// their ids.
func (ns *Namespace) Members() []Member { return slices.Clone(ns.roster.Load().list) }

// SetMember adds a node to this node's list of members, or gives it another
// role. The list is this node's alone: whom it serves, and whose signatures it
// accepts. The other members keep theirs, and the added node needs the secret
// from one of them: an invitation does all of this at once. The tickets that the
// node has redeemed here are void from now on.
//
// The role is looked up where a record arrives, whenever it was written: once a
// writer is made a reader, nodes that do not hold its records yet, those that
// join later among them, refuse them from whoever passes them on. Write anew
// what shall last, from a member that keeps the role.
func (ns *Namespace) SetMember(ctx context.Context, id ID, role Role) error {
	if err := ns.enter("set a member"); err != nil {
		return err
	}
	defer ns.gate.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	err := ns.update(func(s *state) error {
		if !role.valid() {
			return fmt.Errorf("there is no %s", role)
		}
		s.voidInvites(id)
		return s.setMember(id, role, ns.node.now().Unix())
	})
	if err != nil {
		return fmt.Errorf("set member %s of %s: %w", id, ns.Name(), err)
	}
	return nil
}
