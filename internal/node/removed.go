package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Removal tells how the membership of this node ended.
type Removal struct {
	// By is the admin that ended it, or that had given the role which has expired.
	By ID
	At time.Time // by the clock of By
	// Expired: the role was given for a time.
	Expired bool
}

// Removal reports whether this node is not a member any more, as far as it has
// heard: by its own list, by a statement that a peer has shown, or by the time
// until which it was one.
func (ns *Namespace) Removal() (Removal, bool) {
	members := ns.Members()
	if self, ok := members.Member(ns.node.ID); ok && ended(&self, ns.node.Now()) {
		return Removal{self.By, self.Expires.Time(), true}, true
	}
	statement := members.state.Removed
	if former, ok := members.Former(ns.node.ID); ok {
		statement = former.Statement
	}
	if len(statement) == 0 {
		return Removal{}, false
	}
	s, err := ns.parse(statement)
	if err != nil {
		return Removal{}, false
	}
	return Removal{s.Author, s.At.Time(), s.Kind == roster.Expire}, true
}

// outside is ErrDenied where this node is not a member any more.
func (ns *Namespace) outside() error {
	if r, removed := ns.Removal(); removed {
		return r.err()
	}
	return nil
}

func (r Removal) err() error {
	why := ""
	if r.Expired {
		why = ": its role was given for a time"
	}
	return fmt.Errorf("%w: %w by %s at %s%s; what this node holds stays; ask an admin for a new invitation",
		ErrDenied, reconcile.ErrRemoved, r.By, r.At.UTC().Format(time.RFC3339), why)
}

// mustHave says why this node may not do what takes a role, and what to do about it,
// or nil.
func (ns *Namespace) mustHave(role Role, todo string) error {
	if err := ns.outside(); err != nil {
		return err
	}
	self, member := ns.Members().Member(ns.node.ID)
	switch {
	case self.Role >= role:
		return nil
	case !member: // a copy of a member, with an identity of its own
		return fmt.Errorf("%w: this node is not a member; ask an admin for an invitation", ErrDenied)
	}
	return fmt.Errorf("%w: this node's role here is %s, given by %s at %s; %s",
		ErrDenied, self.Role, self.By, self.Since.Time().UTC().Format(time.RFC3339), todo)
}

// explain is what a node is shown that is no member: it was removed, or its role has
// ended by its time.
func (ns *Namespace) explain(id ID, former roster.FormerMember) [][]byte {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if shown := ns.set.Explain(id, wire.MaxStatements); len(shown) > 0 {
		return shown
	}
	return [][]byte{former.Statement}
}

// heed takes the statements by which a peer shows that this node is not a member. It
// returns nil where this node's own list has made it a member again since, so that the
// peer has to hear of that; otherwise why no sync is possible.
func (ns *Namespace) heed(remote ID, statements [][]byte) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	parsed := make([]*roster.Statement, len(statements))
	for i, value := range statements {
		s, err := ns.parse(value)
		if err != nil {
			return fmt.Errorf("%w: %s says that this node was removed, and shows no proof: %w", ErrDenied, remote, err)
		}
		parsed[i] = s
	}
	// Those that the list here can take go on to others from here, too: the disk of the
	// admin that made them may have been replaced by an older copy.
	statuses, refused, err := ns.take(context.Background(), statements)
	if err != nil {
		return err
	}
	if err := ns.outside(); err != nil {
		return err
	}
	waits := func(i int) bool { return refused[i] == nil && statuses[i] == roster.Waiting }
	unclear := false
	for i, s := range parsed {
		if refused[i] == nil && !waits(i) {
			continue
		}
		unclear = true
		if errors.Is(refused[i], roster.ErrRefused) || !ns.believes(remote, s) {
			continue
		}
		if err := ns.updateLocked(func(state *State) error { state.Removed = statements[i]; return nil }); err != nil {
			return err
		}
		return ns.outside()
	}
	if unclear {
		return fmt.Errorf("%w: %s says that this node was removed, and shows statements that do not say so", ErrDenied, remote)
	}
	return nil
}

// believes reports whether a statement that the list here cannot take, since it lacks
// what the statement names, ends this node's membership all the same: a former member is
// shown the latest of that and no more. The statement must be about this node, or about
// an admin from which its role comes. It is believed if an admin, as this node knows it,
// has made it, or shows it: of the author this node may not have heard. What this node
// has stated of itself a copy from before does not know.
func (ns *Namespace) believes(remote ID, s *roster.Statement) bool {
	members := ns.Members()
	own := s.Author == ns.node.ID && s.Subject == s.Author
	return (own || members.Has(s.Author, RoleAdmin) || members.Has(remote, RoleAdmin)) && members.ends(s, ns.node.ID)
}

// ends reports whether a statement, if it counts, ends a membership: it is about that
// member, or takes the authority of an admin from which its role comes.
func (m *Members) ends(s *roster.Statement, id ID) bool {
	removes := s.Kind == roster.Remove || s.Kind == roster.Expire
	if removes && s.Subject == id {
		return true
	}
	takes := removes || s.Kind == roster.Grant && s.Role < RoleAdmin
	for range m.Members() { // no chain of grants is longer
		held, known := m.Member(id)
		if takes && known && s.Subject == held.By {
			return true
		}
		id = held.By
	}
	return false
}

// parse reads a statement and checks its signature.
func (ns *Namespace) parse(value []byte) (*roster.Statement, error) {
	return roster.Parse(ns.Keys.ID, value, ns.node.Verify)
}
