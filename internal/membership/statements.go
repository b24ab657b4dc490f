package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// What this node states about the members. A statement is durable before it counts,
// and travels to the other members with the control namespace.

// SetRole makes a node a member, or gives a member another role. It takes the role
// admin; an admin loses the role only by its own statement or by one of an admin
// above it. From expires on, if it is not zero, the node is a member no longer. A
// node that was removed is one again: what it wrote in between stays outside. force lets
// this node leave the namespace without an admin.
func (g *Group) SetRole(ctx context.Context, id roster.ID, role roster.Role, expires time.Time, force bool) error {
	d, err := g.grant(id, role, expires)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	members := g.Members()
	held, known := members.Member(id)
	if known && held.Role == role && held.Expires == d.Expires {
		return nil
	}
	if !force && (role < roster.RoleAdmin || d.Expires != 0) {
		if err := g.notLast(members, id); err != nil {
			return err
		}
	}
	return g.declare(ctx, d)
}

// grant drafts a statement that gives a role.
func (g *Group) grant(id roster.ID, role roster.Role, expires time.Time) (d roster.Statement, err error) {
	if !role.Valid() {
		return d, fmt.Errorf("%w: there is no %s", ErrInvalid, role)
	}
	d = roster.Statement{Kind: roster.Grant, Subject: id, Role: role}
	if expires.IsZero() {
		return d, nil
	}
	if !expires.After(g.c.Now()) {
		return d, fmt.Errorf("%w: the role would have expired at %s", ErrInvalid, expires.UTC().Format(time.RFC3339))
	}
	d.Expires = dbadapter.TimestampAt(expires)
	if latest := dbadapter.Timestamp(g.c.Clock.Latest()); d.Expires <= latest {
		return d, fmt.Errorf("%w: the role would end at %s, and the namespace's clock, which follows that of the fastest member, says %s; give the role for longer",
			ErrInvalid, expires.UTC().Format(time.RFC3339), latest.Time().UTC().Format(time.RFC3339))
	}
	return d, nil
}

// Remove ends a node's membership. It takes the role admin; a member may remove
// itself. force lets this node leave the namespace without an admin. ErrNotFound: the node
// is not a member.
func (g *Group) Remove(ctx context.Context, id roster.ID, force bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.Outside(); err != nil {
		return err
	}
	members := g.Members()
	if !members.Has(id, roster.RoleRead) {
		return fmt.Errorf("%w: %s is not a member", dbadapter.ErrNotFound, id)
	}
	if !force {
		if err := g.notLast(members, id); err != nil {
			return err
		}
	}
	return g.declare(ctx, roster.Statement{Kind: roster.Remove, Subject: id})
}

// Lapse makes the members wait for a silent one no longer. It stays a member, and
// takes part again once it has caught up. ErrNotFound: the node is not a member.
func (g *Group) Lapse(ctx context.Context, id roster.ID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	held, known := g.Members().Member(id)
	switch {
	case !known:
		return fmt.Errorf("%w: %s is not a member", dbadapter.ErrNotFound, id)
	case id == g.c.Self:
		return fmt.Errorf("%w: this node is not silent", ErrInvalid)
	case held.Lapsed:
		return nil
	}
	return g.declare(ctx, roster.Statement{Kind: roster.Lapse, Subject: id})
}

// Return says that this node, which had lapsed, has caught up.
func (g *Group) Return(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if held, known := g.Members().Member(g.c.Self); !known || !held.Lapsed {
		return nil
	}
	return g.declare(ctx, roster.Statement{Kind: roster.Return, Subject: g.c.Self})
}

// Expire writes down which memberships have ended by their time, if this node is an
// admin. An admin that this one is not above is left to those that are: it has no
// rights meanwhile.
func (g *Group) Expire(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.expire(ctx)
}

// expire is Expire; mu is held.
func (g *Group) expire(ctx context.Context) error {
	members, now := g.Members(), g.c.Now()
	if !members.Has(g.c.Self, roster.RoleAdmin) {
		return nil
	}
	for _, m := range members.Members() {
		if !ended(&m, now) || m.ID == g.c.Self {
			continue
		}
		err := g.declare(ctx, roster.Statement{Kind: roster.Expire, Subject: m.ID})
		if err != nil && !errors.Is(err, ErrDenied) {
			return err
		}
	}
	return nil
}

// NotLast says why this node should not give up its role: it is the last admin, or the last one above an
// admin for a time. ErrDenied.
func (g *Group) NotLast(id roster.ID) error { return g.notLast(g.Members(), id) }

// notLast keeps a namespace from losing its last admin by this node's own doing. It
// also keeps the namespace from losing the last one that could write down the end
// of an admin's term.
func (g *Group) notLast(members *Members, id roster.ID) error {
	if id != g.c.Self || members.Role(id) < roster.RoleAdmin {
		return nil
	}
	var lasting, terms []roster.ID
	for _, m := range members.Members() {
		switch {
		case m.ID == id || m.Role != roster.RoleAdmin:
		case m.Expires == 0:
			lasting = append(lasting, m.ID)
		default:
			terms = append(terms, m.ID)
		}
	}
	if len(lasting) == 0 {
		return fmt.Errorf("%w: this node is the only admin whose role does not end; give another member that role first (syncd member set %s ID --role admin), or leave the namespace without one (--force)", ErrDenied, members.Name())
	}
	for _, m := range terms {
		above := func(admin roster.ID) bool { return members.Above(admin, m) }
		if above(id) && !slices.ContainsFunc(lasting, above) {
			return fmt.Errorf("%w: %s has the role admin for a time, and no other lasting admin is above it, to end that; remove it, or give it another role, first, or leave it so (--force)", ErrDenied, m)
		}
	}
	return nil
}

// Declare makes a statement of this node's, durably. ErrDenied: this node may not make it, or it would
// change nothing.
func (h Held) Declare(ctx context.Context, d roster.Statement) error { return h.g.declare(ctx, d) }

// declare makes a statement of this node's, durably; mu is held. It
// fails with ErrDenied where this node may not make it, and where it would change
// nothing.
func (g *Group) declare(ctx context.Context, d roster.Statement) error {
	if g.over {
		return dbadapter.ErrClosed
	}
	if err := g.Outside(); err != nil {
		return err // the list here may not tell it yet; the others would not count the statement
	}
	if d.Subject != g.c.Self {
		if err := g.MustHave(roster.RoleAdmin, "only an admin does that"); err != nil {
			return err
		}
	}
	at, err := g.c.Version()
	if err != nil {
		return err
	}
	value, err := roster.Make(g.roster, d, g.c.Self, at.Clock, g.c.Sign)
	if errors.Is(err, roster.ErrRefused) && d.Subject != g.c.Self && g.Members().Role(d.Subject) == roster.RoleAdmin {
		return fmt.Errorf("%w: %s is an admin, and this node is not above it in the chain of invitations: only itself, or an admin above it, takes its role", ErrDenied, d.Subject)
	}
	if errors.Is(err, roster.ErrRefused) {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	if err != nil {
		return err
	}
	_, refused, err := g.take(ctx, [][]byte{value})
	g.c.Observer.Declared()
	return errors.Join(err, errors.Join(refused...))
}
