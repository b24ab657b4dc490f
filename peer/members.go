package peer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
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
	RoleRead Role = Role(node.RoleRead)
	// RoleWrite may write records that the other members accept.
	RoleWrite Role = Role(node.RoleWrite)
	// RoleAdmin may invite members.
	RoleAdmin Role = Role(node.RoleAdmin)
)

// String is the role's name, "read", "write" or "admin".
func (r Role) String() string { return node.Role(r).String() }

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	r, err := node.ParseRole(s)
	return Role(r), err
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
func (ns *Namespace) Members() []Member {
	list := ns.core.Members().List()
	out := make([]Member, len(list))
	for i, m := range list {
		out[i] = Member{ID: ID(m.ID), Role: Role(m.Role), Writer: m.Writer, Since: m.Since}
	}
	return out
}

// SetMember adds a node to this node's list of members, or gives it another
// role. The list is this node's alone: the nodes that it serves, and whose
// signatures it accepts. The other members keep theirs, and the added node needs
// the secret from one of them: an invitation does all of this at once. The
// tickets that the node has redeemed here are void from now on.
//
// The role is looked up where a record arrives, whenever it was written: once a
// writer is made a reader, nodes that do not hold its records yet, those that
// join later among them, refuse them whichever member passes them on. To keep
// such a record, write it again from a member that keeps the role.
func (ns *Namespace) SetMember(ctx context.Context, id ID, role Role) error {
	if err := ns.enter("set a member"); err != nil {
		return err
	}
	defer ns.gate.leave()
	err := ctx.Err()
	if err == nil {
		err = ns.core.SetMember(node.ID(id), node.Role(role))
	}
	if err != nil {
		return fmt.Errorf("set member %s of %s: %w", id, ns.Name(), err)
	}
	return nil
}

// share reports whether two peers are members of one namespace of this node.
func (n *Node) share(a, b ID) bool {
	return slices.ContainsFunc(n.Namespaces(), func(ns *Namespace) bool {
		members := ns.core.Members()
		return members.Has(node.ID(a), node.RoleRead) && members.Has(node.ID(b), node.RoleRead)
	})
}

// isMember reports whether a peer is a member of any namespace of this node.
func (n *Node) isMember(id ID) bool { return n.core.IsMember(node.ID(id)) }
