package peer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"
)

// defaultInviteLife is how long a ticket can be used if nothing else is asked
// for: long enough to carry it to a colleague, short enough to be forgotten.
const defaultInviteLife = 24 * time.Hour

// InviteOptions says what a ticket gives.
type InviteOptions struct {
	// Role of who joins. Default: RoleWrite.
	Role Role
	// Expires is for how long the ticket can be used, at most MaxInviteLife.
	// Default: 24 hours.
	Expires time.Duration
}

// Invite makes a ticket with which one node can join the namespace, once. It
// takes the role admin. The ticket is a secret: whoever presents it first
// becomes the member.
func (ns *Namespace) Invite(ctx context.Context, o InviteOptions) (string, error) {
	if err := ns.enter("invite"); err != nil {
		return "", err
	}
	defer ns.gate.leave()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if o.Role == 0 {
		o.Role = RoleWrite
	}
	if o.Expires <= 0 {
		o.Expires = defaultInviteLife
	}
	text, err := ns.invite(o)
	if err != nil {
		return "", fmt.Errorf("invite to %s: %w", ns.Name(), err)
	}
	return text, nil
}

func (ns *Namespace) invite(o InviteOptions) (string, error) {
	n := ns.node
	if !o.Role.valid() {
		return "", fmt.Errorf("there is no %s", o.Role)
	}
	if o.Expires > MaxInviteLife {
		return "", fmt.Errorf("%w: a ticket for %s; a ticket can be used for at most %s", ErrLimit, o.Expires, MaxInviteLife)
	}
	roster := ns.roster.Load()
	if !roster.has(n.self.id, RoleAdmin) {
		return "", fmt.Errorf("%w: this node's role is %s; only an admin invites", ErrDenied, roster.byID[n.self.id].Role)
	}
	t := ticket{
		inviter: n.self.id, addrs: n.dialable(), namespace: ns.keys.ID, name: roster.state.Name,
		role: o.Role, expires: n.now().Add(o.Expires),
	}
	if len(t.addrs) == 0 {
		return "", errors.New("this node listens nowhere, so that nobody could use the ticket; let it listen")
	}
	rand.Read(t.token[:]) // never fails (crypto/rand)
	hash := sha256.Sum256(t.token[:])
	err := ns.update(func(s *state) error {
		s.dropOldInvites(n.now())
		if len(s.Invites) >= MaxInvites {
			return fmt.Errorf("%w: %d tickets are out; wait until some expire", ErrLimit, len(s.Invites))
		}
		// A second more, so that rounding does not shorten what was asked for.
		s.Invites = append(s.Invites, stateInvite{Hash: hash[:], Role: o.Role, Expires: t.expires.Unix() + 1})
		return nil
	})
	if err != nil {
		return "", err
	}
	return t.encode()
}

// dropOldInvites forgets the tickets that expired long ago.
func (s *state) dropOldInvites(now time.Time) {
	s.Invites = slices.DeleteFunc(s.Invites, func(i stateInvite) bool {
		return now.After(time.Unix(i.Expires, 0).Add(expiredInvites))
	})
}

// voidInvites forgets the tickets that a node has redeemed.
func (s *state) voidInvites(id ID) {
	s.Invites = slices.DeleteFunc(s.Invites, func(i stateInvite) bool { return string(i.UsedBy) == string(id) })
}

// Why a ticket is not taken. Who holds the ticket hears which; who guesses
// hears of neither tickets nor namespaces.
var (
	errTicketUnknown = fmt.Errorf("%w: the ticket is not known here", ErrDenied)
	errTicketUsed    = fmt.Errorf("%w: the ticket has been used by another node; ask for a new one", ErrDenied)
	errTicketExpired = fmt.Errorf("%w: the ticket has expired; ask for a new one", ErrDenied)
)

// redeem makes a node a member by its token, durably, once. The same node may
// repeat it until the ticket expires, in case the answer was lost; that changes
// nothing, so that a role taken away since stays away.
func (ns *Namespace) redeem(id ID, token []byte) error {
	now := ns.node.now()
	hash := sha256.Sum256(token)
	return ns.update(func(s *state) error {
		var found *stateInvite
		for i := range s.Invites {
			if subtle.ConstantTimeCompare(s.Invites[i].Hash, hash[:]) == 1 {
				found = &s.Invites[i]
			}
		}
		switch {
		case found == nil:
			return errTicketUnknown
		case len(found.UsedBy) > 0 && string(found.UsedBy) != string(id):
			return errTicketUsed
		case !now.Before(time.Unix(found.Expires, 0)):
			return errTicketExpired
		}
		again := len(found.UsedBy) > 0
		found.UsedBy = []byte(id)
		role := found.Role
		for _, m := range s.Members {
			if string(m.ID) == string(id) {
				if again {
					return nil
				}
				role = max(role, m.Role) // a ticket never takes a right away
			}
		}
		return s.setMember(id, role, now.Unix())
	})
}
