package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// InviteOptions says what a ticket gives.
type InviteOptions struct {
	// Role of the node that joins. Default: RoleWrite.
	Role Role
	// Expires is for how long the ticket can be used, at most MaxInviteLife.
	// Default: 24 hours.
	Expires time.Duration
}

// Invite issues a ticket with which one node can join the namespace, once. It
// takes the role admin. The ticket is a secret: the first node that presents it
// becomes the member.
func (ns *Namespace) Invite(ctx context.Context, o InviteOptions) (string, error) {
	if err := ns.enter("invite"); err != nil {
		return "", err
	}
	defer ns.gate.leave()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	text, err := ns.core.Invite(node.InviteOptions{Role: node.Role(o.Role), Expires: o.Expires}, addrBytes(ns.node.dialable()))
	if err != nil {
		return "", fmt.Errorf("invite to %s: %w", ns.Name(), err)
	}
	return text, nil
}
