package node

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
)

// Removal tells how the membership of this node ended.
type Removal struct {
	By ID
	At time.Time // by the clock of By
}

// Removal reports whether this node is not a member any more, as far as it has
// heard: by its own list, or by a statement that a peer has shown.
func (ns *Namespace) Removal() (Removal, bool) {
	members := ns.Members()
	if former, ok := members.Former(ns.node.ID); ok {
		return Removal{former.RemovedBy, former.At.Time()}, true
	}
	if len(members.state.Removed) > 0 {
		if s, err := ns.parse(members.state.Removed); err == nil {
			return Removal{s.Author, s.At.Time()}, true
		}
	}
	return Removal{}, false
}

// outside is ErrDenied where this node is not a member any more.
func (ns *Namespace) outside() error {
	if r, removed := ns.Removal(); removed {
		return r.err()
	}
	return nil
}

func (r Removal) err() error {
	return fmt.Errorf("%w: %w by %s at %s; what this node holds stays; ask an admin for a new invitation",
		ErrDenied, reconcile.ErrRemoved, r.By, r.At.Format(time.RFC3339))
}

// heed takes what a peer says has removed this node. It returns nil where this
// node's own list has made it a member again since, so that the peer has to hear of
// that; otherwise why no sync is possible.
func (ns *Namespace) heed(remote ID, statement []byte) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	s, err := ns.parse(statement)
	if err != nil {
		return fmt.Errorf("%w: %s says that this node was removed, and shows no proof: %w", ErrDenied, remote, err)
	}
	if ns.set.Has(roster.HashOf(statement)) {
		return ns.outside()
	}
	// The list here lacks what the statement names, perhaps, and a former member is
	// told no more. What an admin, as this node knows it, states of this node, or of
	// the admin that made it a member, is believed.
	members := ns.Members()
	self, _ := members.Member(ns.node.ID)
	ends := (s.Kind == roster.Remove || s.Kind == roster.Expire) && (s.Subject == self.ID || s.Subject == self.By)
	if !ends || !members.Has(s.Author, RoleAdmin) {
		return fmt.Errorf("%w: %s says that this node was removed, and shows a statement of %s that does not", ErrDenied, remote, s.Author)
	}
	if err := ns.updateLocked(func(state *State) error { state.Removed = statement; return nil }); err != nil {
		return err
	}
	return ns.outside()
}

// parse reads a statement and checks its signature.
func (ns *Namespace) parse(value []byte) (*roster.Statement, error) {
	return roster.Parse(ns.Keys.ID, value, ns.node.Verify)
}
