package peer

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
)

// ID names a node: a hash of its public key, as libp2p writes it.
type ID = peer.ID

// Role is what a member may do. Each role may do what those before it may.
type Role uint8

// The roles of a member.
const (
	// RoleRead may receive the records.
	RoleRead Role = Role(node.RoleRead)
	// RoleWrite may write records that the other members accept.
	RoleWrite Role = Role(node.RoleWrite)
	// RoleAdmin may invite, change and remove members.
	RoleAdmin Role = Role(node.RoleAdmin)
)

// String is the role's name, "read", "write" or "admin"; that of 0 is "none".
func (r Role) String() string {
	if r == 0 {
		return "none"
	}
	return node.Role(r).String()
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a role's name.
func (r *Role) UnmarshalText(b []byte) error {
	role, err := node.ParseRole(string(b))
	*r = Role(role)
	return err
}

// Member is a node of the list of members. The list is the same at all members
// that have synced since it changed.
type Member struct {
	ID   ID
	Role Role
	// Writer is the id under which versions name the node.
	Writer dbadapter.WriterID
	// Since is when it got the role, by the clock of By, the admin that gave it.
	Since time.Time
	By    ID
	// Expires is when the role ends; zero for never.
	Expires time.Time
	// Lapsed: the others do not wait for it before they forget what was deleted.
	Lapsed bool
	// Synced is when this node last synced with it to a good end; zero: not since
	// this node was opened.
	Synced time.Time
	// Verified is when a sync of everything has last proved the records equal to its;
	// kept over restarts; zero for never.
	Verified time.Time
}

// Members lists the members by their ids, this node included while it is one.
func (ns *Namespace) Members() []Member {
	list := ns.core.Members().Members()
	out := make([]Member, len(list))
	for i, m := range list {
		out[i] = Member{ID: ID(m.ID), Role: Role(m.Role), Writer: m.Writer, Since: m.Since.Time(), By: ID(m.By), Lapsed: m.Lapsed, Verified: ns.proof(ID(m.ID)).At}
		if at, ok := ns.synced.Load(ID(m.ID)); ok {
			out[i].Synced = at.(time.Time)
		}
		if m.Expires != 0 {
			out[i].Expires = m.Expires.Time()
		}
	}
	return out
}

// ByWriter is the member, or the former one, that versions name by this id. The result
// ok is false if the list of members has no such node.
func (ns *Namespace) ByWriter(w dbadapter.WriterID) (id ID, ok bool) {
	member, ok := ns.core.Members().ByWriter(w)
	return ID(member), ok
}

// SetRole makes a node a member, or gives a member another role. It takes the role
// admin. An admin loses that role only by its own doing or by an admin above it in the
// chain of invitations. The change is durable here when SetRole returns, and travels to
// the other members with the next syncs. A node that is made a member without an
// invitation lacks the secret.
//
// A writer that is made a reader, or removed, keeps what it has, but for its own writes that no
// sync has proved another member to hold. These it sets aside when it hears of it (Kept). A node
// does not do so to itself: ErrHeldHere, until it has synced, or by ForceRole. Nor does the last
// admin step down: ErrDenied.
func (ns *Namespace) SetRole(ctx context.Context, id ID, role Role) error {
	return ns.SetRoleUntil(ctx, id, role, time.Time{})
}

// SetRoleUntil is SetRole for a time, after which the node is a member no longer.
func (ns *Namespace) SetRoleUntil(ctx context.Context, id ID, role Role, expires time.Time) error {
	return ns.setRole(ctx, id, role, expires, false)
}

// ForceRole is SetRoleUntil also where this node gives up what it may hold alone, or leaves
// no admin.
func (ns *Namespace) ForceRole(ctx context.Context, id ID, role Role, expires time.Time) error {
	return ns.setRole(ctx, id, role, expires, true)
}

func (ns *Namespace) setRole(ctx context.Context, id ID, role Role, expires time.Time, force bool) error {
	return ns.manage(ctx, "set the role of "+id.String(), func(ctx context.Context) error {
		return ns.core.SetRole(ctx, node.ID(id), node.Role(role), expires, force)
	})
}

// Remove ends a node's membership. It takes the role admin, for an admin one above
// it in the chain of invitations; a member may remove itself. The node learns of it when
// it next calls a member. ErrNotFound: it is not a member. Of this node: ErrDenied and
// ErrHeldHere as of SetRole. ErrNoMajority: shards would have no majority of their hosts left.
func (ns *Namespace) Remove(ctx context.Context, id ID) error {
	return ns.manage(ctx, "remove "+id.String(), func(ctx context.Context) error {
		if err := ns.core.Leaves(node.ID(id)); err != nil {
			return err
		}
		return ns.core.Remove(ctx, node.ID(id), false)
	})
}

// ForceRemove is Remove as ForceRole is SetRole, and whatever becomes of majorities.
func (ns *Namespace) ForceRemove(ctx context.Context, id ID) error {
	return ns.manage(ctx, "remove "+id.String(), func(ctx context.Context) error { return ns.core.Remove(ctx, node.ID(id), true) })
}

// Lapse has the members wait no longer for one that is silent: what was deleted is
// forgotten without it. It stays a member, and catches up when it comes back. It
// takes the role admin. ErrNotFound: the node is not a member. ErrNoMajority as of Remove.
func (ns *Namespace) Lapse(ctx context.Context, id ID) error {
	return ns.manage(ctx, "lapse "+id.String(), func(ctx context.Context) error {
		if err := ns.core.Leaves(node.ID(id)); err != nil {
			return err
		}
		return ns.core.Lapse(ctx, node.ID(id))
	})
}

// ForceLapse is Lapse whatever becomes of majorities.
func (ns *Namespace) ForceLapse(ctx context.Context, id ID) error {
	return ns.manage(ctx, "lapse "+id.String(), func(ctx context.Context) error { return ns.core.Lapse(ctx, node.ID(id)) })
}

// manage changes the members or the tickets.
func (ns *Namespace) manage(ctx context.Context, what string, change func(ctx context.Context) error) error {
	return ns.within(ctx, what+" in", func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return change(ctx)
	})
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

// Former lists the nodes that were members, by id, with the admin that ended the
// membership. A node that was removed and admitted again is in Members alone.
func (ns *Namespace) Former() []status.FormerMember {
	list := []status.FormerMember{}
	for _, f := range ns.core.Members().FormerMembers() {
		list = append(list, status.FormerMember{ID: ID(f.ID), By: ID(f.RemovedBy), At: f.At.Time()})
	}
	return list
}

// Voided lists the changes of the members that do not count, so that an admin can
// make those that were meant again.
func (ns *Namespace) Voided() []status.VoidStatement {
	list := []status.VoidStatement{}
	for _, v := range ns.core.Members().Voided() {
		one := status.VoidStatement{
			Hash: hex.EncodeToString(v.Hash[:]), Kind: v.Kind.String(), By: ID(v.Author), At: v.At.Time(), Subject: ID(v.Subject),
		}
		if v.Kind == roster.Grant {
			one.Role = v.Role.String()
		}
		list = append(list, one)
	}
	return list
}

// leaveFor bounds how long a drop tries to reach another member, one after the other.
const leaveFor = 10 * time.Second

// takeLeave sends another member the record that this node holds no shard of a namespace any more, before the
// namespace is dropped with that record. Otherwise the others would go on to ask this node about the shards that
// it has held, and wait for its answer.
func (n *Node) takeLeave(ctx context.Context, name string, force bool) error {
	ns, _ := n.Namespace(name)
	if ns == nil || force || ns.core.Rule() == nil || ns.core.Outside() != nil || ns.core.HandedOver() != nil {
		return nil // the drop says why it is refused
	}
	ctx, cancel := context.WithTimeout(ctx, leaveFor)
	defer cancel()
	return ns.hosts.TakeLeave(ctx)
}
