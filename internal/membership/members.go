package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Members is one reading of a namespace's list of members. It never changes, so that a sync
// sees one list from its beginning to its end; a change makes a new one.
type Members struct {
	*roster.List
	name   string
	record *Record
}

// Name is the namespace's alias on this node.
func (m *Members) Name() string { return m.name }

// Alone reports whether a node is the only member.
func (m *Members) Alone(id roster.ID) bool {
	all := m.List.Members()
	return len(all) == 1 && all[0].ID == id
}

// Admits reports whether a node is a member as of now: by the list, and by the time
// at which its role ends.
func (g *Group) Admits(id roster.ID) bool { return g.Members().Admits(id, g.c.Now()) }

// Admits reports whether a node is a member at a time.
func (m *Members) Admits(id roster.ID, now time.Time) bool {
	member, known := m.Member(id)
	return known && !ended(&member, now)
}

// Audience is the members as of now, which may be told what is written here. With
// them it returns when the first of their roles ends; the zero time if none does.
func (g *Group) Audience() (ids map[roster.ID]bool, until time.Time) {
	ids = map[roster.ID]bool{}
	now := g.c.Now()
	for _, m := range g.Members().Members() {
		if ended(&m, now) {
			continue
		}
		ids[m.ID] = true
		if end := m.Expires.Time(); m.Expires != 0 && (until.IsZero() || end.Before(until)) {
			until = end
		}
	}
	return ids, until
}

// ended reports whether a membership has ended by its time.
func ended(m *roster.Member, now time.Time) bool {
	return m.Expires != 0 && now.After(m.Expires.Time())
}

// Removal tells how the membership of this node ended, as far as it has heard; nil: it is
// a member. It may have heard by its own list, by a statement that a peer has shown,
// or by the time until which it was one.
func (g *Group) Removal() *status.Removal {
	members := g.Members()
	if self, ok := members.Member(g.c.Self); ok && ended(&self, g.c.Now()) {
		return &status.Removal{By: status.ID(self.By), At: self.Expires.Time(), Expired: true}
	}
	statement := members.record.Removed
	if former, ok := members.Former(g.c.Self); ok {
		statement = former.Statement
	}
	if len(statement) == 0 {
		return nil
	}
	s, err := g.parse(statement)
	if err != nil {
		return nil
	}
	return &status.Removal{By: status.ID(s.Author), At: s.At.Time(), Expired: s.Kind == roster.Expire}
}

// ShownRemoval reports whether a peer has shown that this node was removed, while the list does not
// tell it.
func (g *Group) ShownRemoval() bool { return len(g.Members().record.Removed) > 0 }

// Outside is ErrDenied where this node is not a member any more.
func (g *Group) Outside() error {
	r := g.Removal()
	if r == nil {
		return nil
	}
	why := ""
	if r.Expired {
		why = ": its role was given for a time"
	}
	return fmt.Errorf("%w: %w by %s at %s%s; what this node has read stays, and syncd rejected lists what it alone may hold; ask an admin for a new invitation",
		ErrDenied, reconcile.ErrRemoved, r.By, r.At.UTC().Format(time.RFC3339), why)
}

// MustHave says why this node may not do what takes a role, and what to do about it,
// or nil.
func (g *Group) MustHave(role roster.Role, todo string) error {
	if err := g.Outside(); err != nil {
		return err
	}
	self, member := g.Members().Member(g.c.Self)
	switch {
	case self.Role >= role:
		return nil
	case !member: // a copy of a member, with an identity of its own
		return fmt.Errorf("%w: this node is not a member; ask an admin for an invitation", ErrDenied)
	}
	return fmt.Errorf("%w: this node's role here is %s, given by %s at %s; %s",
		ErrDenied, self.Role, self.By, self.Since.Time().UTC().Format(time.RFC3339), todo)
}

// Explain is what a node is shown that is no member: it was removed, or its role has
// ended by its time.
func (g *Group) Explain(id roster.ID, former roster.FormerMember) [][]byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	if shown := g.roster.Explain(id, wire.MaxStatements); len(shown) > 0 {
		return shown
	}
	return [][]byte{former.Statement}
}

// Heed takes the statements by which a peer shows that this node is not a member.
// It returns nil where this node's own list has made it a member again since: the
// peer has to hear of that. Otherwise it returns why no sync is possible.
func (g *Group) Heed(remote roster.ID, statements [][]byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	parsed := make([]*roster.Statement, len(statements))
	for i, value := range statements {
		s, err := g.parse(value)
		if err != nil {
			return fmt.Errorf("%w: %s says that this node was removed, and shows no proof: %w", ErrDenied, remote, err)
		}
		parsed[i] = s
	}
	// Those that the list here can take go on to others from here, too. The disk of
	// the admin that made them may have been replaced by an older copy.
	statuses, refused, err := g.take(context.Background(), statements)
	if err != nil {
		return err
	}
	if err := g.Outside(); err != nil {
		return err
	}
	var untaken []*roster.Statement
	var values [][]byte // of these
	unclear := false
	for i, s := range parsed {
		if refused[i] == nil && statuses[i] != roster.Waiting {
			continue
		}
		unclear = true
		if !errors.Is(refused[i], roster.ErrRefused) {
			untaken, values = append(untaken, s), append(values, statements[i])
		}
	}
	if end := g.Members().Ended(g.c.Self, untaken, remote); end != nil {
		value := values[slices.Index(untaken, end)]
		err := g.update(func(r *Record) error { r.Removed = value; return nil })
		if err := errors.Join(err, g.c.Observer.Removed()); err != nil {
			return err
		}
		return g.Outside()
	}
	if unclear {
		return fmt.Errorf("%w: %s says that this node was removed, and shows statements that do not say so", ErrDenied, remote)
	}
	return nil
}
