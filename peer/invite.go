package peer

import (
	"context"
	"time"

	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
)

// InviteOptions says what a ticket gives.
type InviteOptions struct {
	// Role of the node that joins. Default: RoleWrite.
	Role Role
	// Expires is for how long the ticket can be used, at most MaxInviteLife.
	// Default: 24 hours.
	Expires time.Duration
	// Uses is how many nodes can join by the ticket, at most MaxMembers. Default: 1.
	Uses int
}

// Invite issues a ticket with which nodes can join the namespace. It takes the role
// admin. The ticket is a secret: the first nodes that present it become members.
// Only this node can redeem it, so that it must run and be an admin then.
func (ns *Namespace) Invite(ctx context.Context, o InviteOptions) (ticket string, err error) {
	err = ns.within(ctx, "invite to", func(ctx context.Context) (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		ticket, err = ns.core.Invite(membership.InviteOptions{Role: node.Role(o.Role), Expires: o.Expires, Uses: o.Uses}, netio.AddrBytes(ns.node.host.Dialable()))
		return err
	})
	return ticket, err
}

// Invites lists the tickets that this node has issued, the oldest first. Those that
// are used up or have expired are among them for a week.
func (ns *Namespace) Invites() []status.Invite {
	list := []status.Invite{}
	for _, i := range ns.core.Invitations() {
		one := status.Invite{ID: i.ID, Role: i.Role.String(), Issued: i.Issued, Expires: i.Expires, Uses: i.Uses, UsedBy: []ID{}}
		for _, id := range i.UsedBy {
			one.UsedBy = append(one.UsedBy, ID(id))
		}
		list = append(list, one)
	}
	return list
}

// Revoke makes a ticket useless from now on; id is one of Invites, or the ticket
// itself. The nodes that have joined by it stay members. ErrNotFound: this node has
// issued no such ticket, or has forgotten it.
func (ns *Namespace) Revoke(ctx context.Context, id string) error {
	return ns.manage(ctx, "revoke a ticket", func(context.Context) error { return ns.core.Revoke(id) })
}
