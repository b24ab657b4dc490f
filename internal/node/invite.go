package node

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// InviteOptions says what a ticket gives.
type InviteOptions struct {
	Role    Role          // of the nodes that join; 0: RoleWrite
	Expires time.Duration // for how long the ticket can be used; 0: DefaultInviteLife
	Uses    int           // how many nodes can join by it; 0: one
}

// Invite issues a ticket with which nodes can join the namespace. It takes the role
// admin. addrs are
// where this node can be reached, in binary. The ticket is a secret: the first nodes
// that present it become members. Only this node can redeem it.
func (ns *Namespace) Invite(o InviteOptions, addrs [][]byte) (string, error) {
	if o.Role == 0 {
		o.Role = RoleWrite
	}
	if o.Expires == 0 {
		o.Expires = DefaultInviteLife
	}
	if o.Uses == 0 {
		o.Uses = 1
	}
	switch {
	case !o.Role.Valid():
		return "", fmt.Errorf("%w: there is no %s", ErrInvalid, o.Role)
	case o.Expires < 0:
		return "", fmt.Errorf("%w: a ticket that expires %s ago", ErrInvalid, -o.Expires)
	case o.Expires > MaxInviteLife:
		return "", fmt.Errorf("%w: a ticket for %s; a ticket can be used for at most %s", dbadapter.ErrLimit, o.Expires, MaxInviteLife)
	case o.Uses < 0:
		return "", fmt.Errorf("%w: a ticket for %d nodes", ErrInvalid, o.Uses)
	case o.Uses > MaxUses:
		return "", fmt.Errorf("%w: a ticket for %d nodes; a ticket admits at most %d", dbadapter.ErrLimit, o.Uses, MaxUses)
	case len(addrs) == 0:
		return "", errors.New("this node does not listen, so that no node could redeem the ticket; let it listen")
	}
	if err := ns.mustHave(RoleAdmin, "only an admin invites"); err != nil {
		return "", err
	}
	now := ns.node.Now()
	t := Ticket{
		Inviter: ns.node.ID, Addrs: addrs, Namespace: ns.id, Name: ns.Members().Name(),
		Role: o.Role, Expires: now.Add(o.Expires),
	}
	ns.node.random(t.Token[:], ForToken)
	hash := sha256.Sum256(t.Token[:])
	heads := ns.heads()
	err := ns.update(func(s *State) error {
		s.dropOldInvites(now)
		if len(s.Invites) >= MaxInvites {
			return fmt.Errorf("%w: %d tickets are out; revoke some, or wait until they expire", dbadapter.ErrLimit, len(s.Invites))
		}
		s.Invites = append(s.Invites, storedInvite{
			Hash: hash[:], Role: o.Role, Uses: o.Uses, Issued: dbadapter.Timestamp(ns.clock.Read()), Heads: heads,
			Expires: t.Expires.Unix() + 1, // so that rounding does not shorten what was asked for
		})
		return nil
	})
	if err != nil {
		return "", err
	}
	return t.encode()
}

// ticketID names a ticket by a part of its token's hash.
func ticketID(hash []byte) string { return hex.EncodeToString(hash[:8]) }

// Invitation is a ticket that this node has issued.
type Invitation struct {
	ID      string
	Role    Role
	Issued  time.Time
	Expires time.Time
	Uses    int
	UsedBy  []ID
}

// Invitations lists the tickets that this node has issued and remembers, the oldest
// first. Used up and expired ones are among them for a while.
func (ns *Namespace) Invitations() []Invitation {
	var list []Invitation
	for _, i := range ns.state.Load().Invites {
		one := Invitation{
			ID: ticketID(i.Hash), Role: i.Role, Issued: i.Issued.Time(), Expires: time.Unix(i.Expires, 0).UTC(), Uses: i.Uses,
		}
		for _, id := range i.UsedBy {
			one.UsedBy = append(one.UsedBy, ID(id))
		}
		list = append(list, one)
	}
	return list
}

// Revoke makes a ticket useless from now on: the ticket of an id that Invitations
// lists, or the ticket itself. The nodes that have joined by it stay members.
// ErrNotFound: this node has issued no such ticket, or has forgotten it.
func (ns *Namespace) Revoke(id string) error {
	if t, err := ParseTicket(id); err == nil {
		hash := sha256.Sum256(t.Token[:])
		id = ticketID(hash[:])
	}
	return ns.update(func(s *State) error {
		before := len(s.Invites)
		s.Invites = slices.DeleteFunc(s.Invites, func(i storedInvite) bool { return ticketID(i.Hash) == id })
		if len(s.Invites) == before {
			return fmt.Errorf("%w: this node has issued no ticket %.40q in this namespace", dbadapter.ErrNotFound, id)
		}
		return nil
	})
}

// dropOldInvites forgets the tickets that expired long ago.
func (s *State) dropOldInvites(now time.Time) {
	s.Invites = slices.DeleteFunc(s.Invites, func(i storedInvite) bool {
		return now.After(time.Unix(i.Expires, 0).Add(expiredInvites))
	})
}

// The reasons for refusing a ticket. The holder of the ticket is told which; a
// peer that guesses learns neither of tickets nor of namespaces.
var (
	errTicketUnknown = fmt.Errorf("%w: the ticket is not known here: it was revoked, or is not of this node; ask for a new one", ErrDenied)
	errTicketUsed    = fmt.Errorf("%w: the ticket has been used; ask for a new one", ErrDenied)
	errTicketExpired = fmt.Errorf("%w: the ticket has expired; ask for a new one", ErrDenied)
	errTicketOld     = fmt.Errorf("%w: this node was removed, or its role ended, since the ticket was issued; ask for a new one", ErrDenied)
	errTicketEnded   = fmt.Errorf("%w: the inviter was removed after it had issued the ticket; ask for a new one", ErrDenied)
)

// heads are those of the list of members as it is now.
func (ns *Namespace) heads() (heads [][]byte) {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	for _, h := range ns.roster.Heads() {
		if len(heads) < roster.MaxHeads {
			heads = append(heads, h[:])
		}
	}
	return heads
}

// endedSince is the latest time at which a node's roles ended by statements not yet
// heard when these were the heads of the list.
func (ns *Namespace) endedSince(id ID, heads [][]byte) dbadapter.Timestamp {
	seen := make([]roster.Hash, len(heads))
	for i, h := range heads {
		seen[i] = roster.Hash(h)
	}
	return ns.roster.EndedSince(id, seen)
}

// redeem makes a node a member by its token, durably. The same node may repeat it
// until the ticket expires, in case the answer was lost. A repetition changes
// nothing, so a role taken away since stays away.
func (ns *Namespace) redeem(ctx context.Context, id ID, token []byte) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if err := ns.expireLocked(ctx); err != nil { // what is over counts for no ticket
		return err
	}
	now := ns.node.Now()
	hash := sha256.Sum256(token)
	members := ns.Members()
	held, _ := members.Member(id)
	over := ended(&held, now) // an admin that this one is not above
	var role Role
	again := false
	// The use is durable before the grant. A ticket admits no more nodes than it
	// says, and what a crash cuts short the node repeats.
	err := ns.update(func(s *State) error {
		var found *storedInvite
		for i := range s.Invites {
			if subtle.ConstantTimeCompare(s.Invites[i].Hash, hash[:]) == 1 {
				found = &s.Invites[i]
			}
		}
		if found == nil {
			return errTicketUnknown
		}
		again = slices.ContainsFunc(found.UsedBy, func(by []byte) bool { return string(by) == string(id) })
		_, removed := members.Former(id)
		switch {
		case !again && len(found.UsedBy) >= found.Uses:
			return errTicketUsed
		case !now.Before(time.Unix(found.Expires, 0)):
			return errTicketExpired
		case ns.endedSince(ns.node.ID, found.Heads) > 0:
			return errTicketEnded
		case removed && (again || ns.endedSince(id, found.Heads) >= found.Issued),
			over && (again || held.Expires >= found.Issued):
			return errTicketOld
		}
		role = found.Role
		if !again {
			found.UsedBy = append(found.UsedBy, []byte(id))
		}
		return nil
	})
	// A ticket never takes a right away. A new one makes a role last that was given for a
	// time.
	keeps := held.Role > role || held.Role == role && held.Expires == 0 || again && held.Role > 0
	if err != nil || keeps && !over {
		return err
	}
	return ns.declareLocked(ctx, roster.Draft{Kind: roster.Grant, Subject: id, Role: role})
}
