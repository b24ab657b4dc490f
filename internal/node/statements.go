package node

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
// node that was removed is one again: what it wrote in between stays outside. This node's
// own right to write it does not give up with writes that it may hold alone: ErrHeldHere.
func (ns *Namespace) SetRole(ctx context.Context, id ID, role Role, expires time.Time) error {
	return ns.setRole(ctx, id, role, expires, false)
}

// ForceRole is SetRole whatever this node leaves behind.
func (ns *Namespace) ForceRole(ctx context.Context, id ID, role Role, expires time.Time) error {
	return ns.setRole(ctx, id, role, expires, true)
}

func (ns *Namespace) setRole(ctx context.Context, id ID, role Role, expires time.Time, force bool) (err error) {
	if !role.Valid() {
		return fmt.Errorf("%w: there is no %s", ErrInvalid, role)
	}
	d := roster.Draft{Kind: roster.Grant, Subject: id, Role: role}
	if !expires.IsZero() {
		if !expires.After(ns.node.Now()) {
			return fmt.Errorf("%w: the role would have expired at %s", ErrInvalid, expires.UTC().Format(time.RFC3339))
		}
		d.Expires = dbadapter.TimestampAt(expires)
		if latest := dbadapter.Timestamp(ns.clock.Latest()); d.Expires <= latest {
			return fmt.Errorf("%w: the role would end at %s, and the namespace's clock, which follows that of the fastest member, says %s; give the role for longer",
				ErrInvalid, expires.UTC().Format(time.RFC3339), latest.Time().UTC().Format(time.RFC3339))
		}
	}
	if role == RoleRead && !force {
		if err := ns.mayGiveUp(ctx, id); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, ns.renounce(ctx)) }()
	ns.updating.Lock()
	defer ns.updating.Unlock()
	members := ns.Members()
	held, known := members.Member(id)
	if known && held.Role == role && held.Expires == d.Expires {
		return nil
	}
	if !force && (role < RoleAdmin || d.Expires != 0) {
		if err := ns.notLast(members, id); err != nil {
			return err
		}
	}
	return ns.declareLocked(ctx, d)
}

// Remove ends a node's membership. It takes the role admin; a member may remove
// itself, but not with writes that it may hold alone: ErrHeldHere. ErrNotFound: the node
// is not a member.
func (ns *Namespace) Remove(ctx context.Context, id ID) error { return ns.remove(ctx, id, false) }

// ForceRemove is Remove whatever this node leaves behind.
func (ns *Namespace) ForceRemove(ctx context.Context, id ID) error { return ns.remove(ctx, id, true) }

func (ns *Namespace) remove(ctx context.Context, id ID, force bool) (err error) {
	if !force {
		if err := ns.mayGiveUp(ctx, id); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, ns.renounce(ctx)) }()
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if err := ns.Outside(); err != nil {
		return err
	}
	members := ns.Members()
	if !members.Has(id, RoleRead) {
		return fmt.Errorf("%w: %s is not a member", dbadapter.ErrNotFound, id)
	}
	if !force {
		if err := ns.notLast(members, id); err != nil {
			return err
		}
	}
	return ns.declareLocked(ctx, roster.Draft{Kind: roster.Remove, Subject: id})
}

// Lapse makes the members wait for a silent one no longer. It stays a member, and
// takes part again once it has caught up. ErrNotFound: the node is not a member.
func (ns *Namespace) Lapse(ctx context.Context, id ID) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	held, known := ns.Members().Member(id)
	switch {
	case !known:
		return fmt.Errorf("%w: %s is not a member", dbadapter.ErrNotFound, id)
	case id == ns.node.ID:
		return fmt.Errorf("%w: this node is not silent", ErrInvalid)
	case held.Lapsed:
		return nil
	}
	return ns.declareLocked(ctx, roster.Draft{Kind: roster.Lapse, Subject: id})
}

// Return says that this node, which had lapsed, has caught up.
func (ns *Namespace) Return(ctx context.Context) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if held, known := ns.Members().Member(ns.node.ID); !known || !held.Lapsed {
		return nil
	}
	return ns.declareLocked(ctx, roster.Draft{Kind: roster.Return, Subject: ns.node.ID})
}

// expire writes down which memberships have ended by their time, if this node is an
// admin. An admin that this one is not above is left to those that are: it has no
// rights meanwhile.
func (ns *Namespace) expire(ctx context.Context) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	return ns.expireLocked(ctx)
}

// expireLocked is expire; updating is held.
func (ns *Namespace) expireLocked(ctx context.Context) error {
	members, now := ns.Members(), ns.node.Now()
	if !members.Has(ns.node.ID, RoleAdmin) {
		return nil
	}
	for _, m := range members.Members() {
		if !ended(&m, now) || m.ID == ns.node.ID {
			continue
		}
		err := ns.declareLocked(ctx, roster.Draft{Kind: roster.Expire, Subject: m.ID})
		if err != nil && !errors.Is(err, ErrDenied) {
			return err
		}
	}
	return nil
}

// notLast keeps a namespace from losing its last admin by this node's own doing. It
// also keeps the namespace from losing the last one that could write down the end
// of an admin's term.
func (ns *Namespace) notLast(members *Members, id ID) error {
	if id != ns.node.ID || members.Role(id) < RoleAdmin {
		return nil
	}
	var lasting, terms []ID
	for _, m := range members.Members() {
		switch {
		case m.ID == id || m.Role != RoleAdmin:
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
		above := func(admin ID) bool { return members.Above(admin, m) }
		if above(id) && !slices.ContainsFunc(lasting, above) {
			return fmt.Errorf("%w: %s has the role admin for a time, and no other lasting admin is above it, to end that; remove it, or give it another role, first, or leave it so (--force)", ErrDenied, m)
		}
	}
	return nil
}

// declareLocked makes a statement of this node's, durably; updating is held. It
// fails with ErrDenied where this node may not make it, and where it would change
// nothing.
func (ns *Namespace) declareLocked(ctx context.Context, d roster.Draft) error {
	if ns.over {
		return dbadapter.ErrClosed
	}
	if err := ns.Outside(); err != nil {
		return err // the list here may not tell it yet; the others would not count the statement
	}
	if d.Subject != ns.node.ID {
		if err := ns.mustHave(RoleAdmin, "only an admin does that"); err != nil {
			return err
		}
	}
	at, err := ns.NextVersion()
	if err != nil {
		return err
	}
	value, err := roster.Make(ns.roster, d, ns.node.ID, at.Clock, ns.node.Sign)
	if errors.Is(err, roster.ErrRefused) && d.Subject != ns.node.ID && ns.Members().Role(d.Subject) == RoleAdmin {
		return fmt.Errorf("%w: %s is an admin, and this node is not above it in the chain of invitations: only itself, or an admin above it, takes its role", ErrDenied, d.Subject)
	}
	if errors.Is(err, roster.ErrRefused) {
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	if err != nil {
		return err
	}
	_, refused, err := ns.take(ctx, [][]byte{value})
	for _, set := range ns.Sets() {
		set.pushes.AskSync() // writes that go on would put the digest off
	}
	return errors.Join(err, errors.Join(refused...))
}
