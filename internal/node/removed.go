package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
// heard. It may have heard by its own list, by a statement that a peer has shown,
// or by the time until which it was one.
func (ns *Namespace) Removal() (Removal, bool) {
	members := ns.Members()
	if self, ok := members.Member(ns.node.ID); ok && ended(&self, ns.node.Now()) {
		return Removal{self.By, self.Expires.Time(), true}, true
	}
	statement := ns.state.Load().Removed
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
func (ns *Namespace) Outside() error {
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
	return fmt.Errorf("%w: %w by %s at %s%s; what this node has read stays, and syncd rejected lists what it alone may hold; ask an admin for a new invitation",
		ErrDenied, reconcile.ErrRemoved, r.By, r.At.UTC().Format(time.RFC3339), why)
}

// mustHave says why this node may not do what takes a role, and what to do about it,
// or nil.
func (ns *Namespace) mustHave(role Role, todo string) error {
	if err := ns.Outside(); err != nil {
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
	if shown := ns.roster.Explain(id, wire.MaxStatements); len(shown) > 0 {
		return shown
	}
	return [][]byte{former.Statement}
}

// heed takes the statements by which a peer shows that this node is not a member.
// It returns nil where this node's own list has made it a member again since: the
// peer has to hear of that. Otherwise it returns why no sync is possible.
func (ns *Namespace) heed(remote ID, statements [][]byte) (err error) {
	defer func() { err = errors.Join(err, ns.renounce(context.Background())) }()
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
	// Those that the list here can take go on to others from here, too. The disk of
	// the admin that made them may have been replaced by an older copy.
	statuses, refused, err := ns.take(context.Background(), statements)
	if err != nil {
		return err
	}
	if err := ns.Outside(); err != nil {
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
	if end := ns.Members().Ended(ns.node.ID, untaken, remote); end != nil {
		value := values[slices.Index(untaken, end)]
		err := ns.update(func(state *State) error { state.Removed = value; return nil })
		if err := errors.Join(err, ns.followRight()); err != nil {
			return err
		}
		return ns.Outside()
	}
	if unclear {
		return fmt.Errorf("%w: %s says that this node was removed, and shows statements that do not say so", ErrDenied, remote)
	}
	return nil
}

// parse reads a statement and checks its signature.
func (ns *Namespace) parse(value []byte) (*roster.Statement, error) {
	return roster.Parse(ns.id, value, ns.node.verify)
}
