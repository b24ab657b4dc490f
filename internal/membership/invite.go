package membership

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
	"github.com/syncd-io/syncd/peer/status"
)

// InviteOptions says what a ticket gives.
type InviteOptions struct {
	Role    roster.Role   // of the nodes that join; 0: RoleWrite
	Expires time.Duration // for how long the ticket can be used; 0: DefaultInviteLife
	Uses    int           // how many nodes can join by it; 0: one
}

// Invite issues a ticket with which nodes can join the namespace. It takes the role
// admin. addrs are
// where this node can be reached, in binary. The ticket is a secret: the first nodes
// that present it become members. Only this node can redeem it.
func (g *Group) Invite(o InviteOptions, addrs [][]byte) (string, error) {
	if o.Role == 0 {
		o.Role = roster.RoleWrite
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
	if err := g.MustHave(roster.RoleAdmin, "only an admin invites"); err != nil {
		return "", err
	}
	now := g.c.Now()
	t := Ticket{
		Inviter: g.c.Self, Addrs: addrs, Namespace: g.c.Namespace, Name: g.c.Name,
		Role: o.Role, Expires: now.Add(o.Expires),
	}
	g.c.Random(t.Token[:])
	hash := sha256.Sum256(t.Token[:])
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.update(func(r *Record) error {
		r.dropOldInvites(now)
		if len(r.Invites) >= MaxInvites {
			return fmt.Errorf("%w: %d tickets are out; revoke some, or wait until they expire", dbadapter.ErrLimit, len(r.Invites))
		}
		r.Invites = append(r.Invites, Invite{
			Hash: hash[:], Role: o.Role, Uses: o.Uses, Issued: dbadapter.Timestamp(g.c.Clock.Read()), Heads: g.heads(),
			Expires: t.Expires.Unix() + 1, // so that rounding does not shorten what was asked for
		})
		return nil
	})
	if err != nil {
		return "", err
	}
	return t.Encode()
}

// Invite is a ticket that was issued here. Only the hash of its token is
// kept: the file does not let its reader join.
type Invite struct {
	Hash []byte      `cbor:"1,keyasint"` // SHA-256 of the token
	Role roster.Role `cbor:"2,keyasint"`
	// Issued is a reading of the namespace's clock, which tells it from the statements
	// that this node has seen.
	Issued  dbadapter.Timestamp `cbor:"3,keyasint"`
	Expires int64               `cbor:"4,keyasint"` // Unix seconds
	Uses    int                 `cbor:"5,keyasint"` // how many nodes may redeem it
	UsedBy  [][]byte            `cbor:"6,keyasint"` // the nodes that have
	// Heads are those of the list when it was issued. A removal that they reach was
	// before it, whatever the clock of the removal's author said.
	Heads [][]byte `cbor:"7,keyasint"`
}

func (i *Invite) validate() error {
	malformed := len(i.Hash) != tokenSize || !i.Role.Valid() || i.Uses < 1 || i.Uses > MaxUses || len(i.UsedBy) > i.Uses || len(i.Heads) > roster.MaxHeads
	if malformed || slices.ContainsFunc(i.Heads, func(h []byte) bool { return len(h) != len(roster.Hash{}) }) {
		return errors.New("a malformed ticket")
	}
	return nil
}

// ticketID names a ticket by a part of its token's hash.
func ticketID(hash []byte) string { return hex.EncodeToString(hash[:8]) }

// Invitations lists the tickets that this node has issued and remembers, the oldest
// first. Used up and expired ones are among them for a while.
func (g *Group) Invitations() []status.Invite {
	list := []status.Invite{}
	for _, i := range g.Members().record.Invites {
		one := status.Invite{
			ID: ticketID(i.Hash), Role: i.Role.String(), Issued: i.Issued.Time(), Expires: time.Unix(i.Expires, 0).UTC(), Uses: i.Uses, UsedBy: []status.ID{},
		}
		for _, id := range i.UsedBy {
			one.UsedBy = append(one.UsedBy, status.ID(id))
		}
		list = append(list, one)
	}
	return list
}

// Revoke makes a ticket useless from now on: the ticket of an id that Invitations
// lists, or the ticket itself. The nodes that have joined by it stay members.
// ErrNotFound: this node has issued no such ticket, or has forgotten it.
func (g *Group) Revoke(id string) error {
	if t, err := ParseTicket(id); err == nil {
		hash := sha256.Sum256(t.Token[:])
		id = ticketID(hash[:])
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.update(func(r *Record) error {
		before := len(r.Invites)
		r.Invites = slices.DeleteFunc(r.Invites, func(i Invite) bool { return ticketID(i.Hash) == id })
		if len(r.Invites) == before {
			return fmt.Errorf("%w: this node has issued no ticket %.40q in this namespace", dbadapter.ErrNotFound, id)
		}
		return nil
	})
}

// dropOldInvites forgets the tickets that expired long ago.
func (r *Record) dropOldInvites(now time.Time) {
	r.Invites = slices.DeleteFunc(r.Invites, func(i Invite) bool {
		return now.After(time.Unix(i.Expires, 0).Add(ExpiredInvites))
	})
}

// The reasons for refusing a ticket. The holder of the ticket is told which; a
// peer that guesses learns neither of tickets nor of namespaces.
var (
	ErrTicketUnknown = fmt.Errorf("%w: the ticket is not known here: it was revoked, or is not of this node; ask for a new one", ErrDenied)
	ErrTicketUsed    = fmt.Errorf("%w: the ticket has been used; ask for a new one", ErrDenied)
	ErrTicketExpired = fmt.Errorf("%w: the ticket has expired; ask for a new one", ErrDenied)
	ErrTicketOld     = fmt.Errorf("%w: this node was removed, or its role ended, since the ticket was issued; ask for a new one", ErrDenied)
	ErrTicketEnded   = fmt.Errorf("%w: the inviter was removed after it had issued the ticket; ask for a new one", ErrDenied)
)

// heads are those of the list of members as it is now. mu is held.
func (g *Group) heads() (heads [][]byte) {
	for _, h := range g.roster.Heads() {
		if len(heads) < roster.MaxHeads {
			heads = append(heads, h[:])
		}
	}
	return heads
}

// endedSince is the latest time at which a node's roles ended by statements not yet
// heard when these were the heads of the list.
func (g *Group) endedSince(id roster.ID, heads [][]byte) dbadapter.Timestamp {
	seen := make([]roster.Hash, len(heads))
	for i, h := range heads {
		seen[i] = roster.Hash(h)
	}
	return g.roster.EndedSince(id, seen)
}

// Redeem makes a node a member by its token, durably. The same node may repeat it
// until the ticket expires, in case the answer was lost. A repetition changes
// nothing, so a role taken away since stays away.
func (g *Group) Redeem(ctx context.Context, id roster.ID, token []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.expire(ctx); err != nil { // what is over counts for no ticket
		return err
	}
	now := g.c.Now()
	hash := sha256.Sum256(token)
	members := g.Members()
	held, _ := members.Member(id)
	over := ended(&held, now) // an admin that this one is not above
	var role roster.Role
	again := false
	// The use is durable before the grant. A ticket admits no more nodes than it
	// says, and what a crash cuts short the node repeats.
	err := g.update(func(r *Record) error {
		var found *Invite
		for i := range r.Invites {
			if subtle.ConstantTimeCompare(r.Invites[i].Hash, hash[:]) == 1 {
				found = &r.Invites[i]
			}
		}
		if found == nil {
			return ErrTicketUnknown
		}
		again = slices.ContainsFunc(found.UsedBy, func(by []byte) bool { return string(by) == string(id) })
		_, removed := members.Former(id)
		switch {
		case !again && len(found.UsedBy) >= found.Uses:
			return ErrTicketUsed
		case !now.Before(time.Unix(found.Expires, 0)):
			return ErrTicketExpired
		case g.endedSince(g.c.Self, found.Heads) > 0:
			return ErrTicketEnded
		case removed && (again || g.endedSince(id, found.Heads) >= found.Issued),
			over && (again || held.Expires >= found.Issued):
			return ErrTicketOld
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
	return g.declare(ctx, roster.Statement{Kind: roster.Grant, Subject: id, Role: role})
}
