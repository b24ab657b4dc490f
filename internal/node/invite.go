package node

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// InviteOptions says what a ticket gives.
type InviteOptions struct {
	Role    Role          // of the node that joins; 0: RoleWrite
	Expires time.Duration // for how long the ticket can be used; 0: DefaultInviteLife
}

// Invite issues a ticket with which one node can join the namespace, once. It
// takes the role admin. addrs are where this node can be reached, in binary.
// The ticket is a secret: the first node that presents it becomes the member.
func (ns *Namespace) Invite(o InviteOptions, addrs [][]byte) (string, error) {
	if o.Role == 0 {
		o.Role = RoleWrite
	}
	if o.Expires == 0 {
		o.Expires = DefaultInviteLife
	}
	switch members := ns.Members(); {
	case !o.Role.Valid():
		return "", fmt.Errorf("%w: there is no %s", ErrInvalid, o.Role)
	case o.Expires < 0:
		return "", fmt.Errorf("%w: a ticket that expires %s ago", ErrInvalid, -o.Expires)
	case o.Expires > MaxInviteLife:
		return "", fmt.Errorf("%w: a ticket for %s; a ticket can be used for at most %s", dbadapter.ErrLimit, o.Expires, MaxInviteLife)
	case !members.Has(ns.node.ID, RoleAdmin):
		return "", fmt.Errorf("%w: this node's role is %s; only an admin invites", ErrDenied, members.Role(ns.node.ID))
	case len(addrs) == 0:
		return "", errors.New("this node does not listen, so that no node could redeem the ticket; let it listen")
	}
	now := ns.node.Now()
	t := Ticket{
		Inviter: ns.node.ID, Addrs: addrs, Namespace: ns.Keys.ID, Name: ns.Members().Name(),
		Role: o.Role, Expires: now.Add(o.Expires),
	}
	ns.node.random(t.Token[:], ForToken)
	hash := sha256.Sum256(t.Token[:])
	err := ns.update(func(s *State) error {
		s.dropOldInvites(now)
		if len(s.Invites) >= MaxInvites {
			return fmt.Errorf("%w: %d tickets are out; wait until some expire", dbadapter.ErrLimit, len(s.Invites))
		}
		// A second more, so that rounding does not shorten what was asked for.
		s.Invites = append(s.Invites, storedInvite{Hash: hash[:], Role: o.Role, Expires: t.Expires.Unix() + 1})
		return nil
	})
	if err != nil {
		return "", err
	}
	return t.encode()
}

// dropOldInvites forgets the tickets that expired long ago.
func (s *State) dropOldInvites(now time.Time) {
	s.Invites = slices.DeleteFunc(s.Invites, func(i storedInvite) bool {
		return now.After(time.Unix(i.Expires, 0).Add(expiredInvites))
	})
}

// voidInvites forgets the tickets that a node has redeemed.
func (s *State) voidInvites(id ID) {
	s.Invites = slices.DeleteFunc(s.Invites, func(i storedInvite) bool { return string(i.UsedBy) == string(id) })
}

// The reasons for refusing a ticket. The holder of the ticket is told which; a
// peer that guesses learns neither of tickets nor of namespaces.
var (
	errTicketUnknown = fmt.Errorf("%w: the ticket is not known here", ErrDenied)
	errTicketUsed    = fmt.Errorf("%w: the ticket has been used by another node; ask for a new one", ErrDenied)
	errTicketExpired = fmt.Errorf("%w: the ticket has expired; ask for a new one", ErrDenied)
)

// redeem makes a node a member by its token, durably, once. The same node may
// repeat it until the ticket expires, in case the answer was lost; that changes
// nothing, so that a role taken away since stays away.
func (ns *Namespace) redeem(id ID, token []byte) error {
	now := ns.node.Now()
	hash := sha256.Sum256(token)
	return ns.update(func(s *State) error {
		var found *storedInvite
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
		if at := s.find(id); at >= 0 {
			if again {
				return nil
			}
			role = max(role, s.Members[at].Role) // a ticket never takes a right away
		}
		return s.setMember(id, role, now.Unix())
	})
}
