package peer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
)

// roster is one reading of a namespace's state: it never changes, so that a
// sync sees one list from its beginning to its end. A change makes a new one.
type roster struct {
	state    *state
	list     []Member // by id
	byID     map[ID]Member
	byWriter map[dbadapter.WriterID]Member
}

func newRoster(s *state) (*roster, error) {
	r := &roster{state: s, byID: map[ID]Member{}, byWriter: map[dbadapter.WriterID]Member{}}
	for _, stored := range s.Members {
		m, err := stored.member()
		if err != nil {
			return nil, err
		}
		if other, taken := r.byWriter[m.Writer]; taken {
			return nil, fmt.Errorf("%w: members %s and %s have the same 64-bit writer id; one of them needs a new key", ErrDenied, other.ID, m.ID)
		}
		r.byID[m.ID], r.byWriter[m.Writer] = m, m
		r.list = append(r.list, m)
	}
	slices.SortFunc(r.list, func(a, b Member) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return r, nil
}

func (r *roster) policy() Policy {
	return Policy{Unsigned: r.state.Policy.Unsigned, MaxSkew: r.state.Policy.MaxSkew}
}

// has reports whether a node has at least a role.
func (r *roster) has(id ID, role Role) bool { return r.byID[id].Role >= role }

// setMember adds a member or changes its role.
func (s *state) setMember(id ID, role Role, since int64) error {
	if i := slices.IndexFunc(s.Members, func(m stateMember) bool { return string(m.ID) == string(id) }); i >= 0 {
		s.Members[i].Role = role
		return nil
	}
	if len(s.Members) >= MaxMembers {
		return fmt.Errorf("%w: a namespace has at most %d members", ErrLimit, MaxMembers)
	}
	s.Members = append(s.Members, stateMember{[]byte(id), role, since})
	return nil
}

// update changes the namespace's state: fn edits a copy, which becomes durable
// before anybody acts on it.
func (ns *Namespace) update(fn func(s *state) error) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if ns.ctx.Err() != nil {
		return ErrClosed // its folder may be gone, or another's
	}
	next := ns.roster.Load().state.clone()
	if err := fn(next); err != nil {
		return err
	}
	if err := next.validate(); err != nil {
		return err
	}
	roster, err := newRoster(next)
	if err != nil {
		return err
	}
	if ns.folder != "" {
		if err := saveState(ns.folder, next); err != nil {
			return fmt.Errorf("save the members of %s: %w", next.Name, err)
		}
	}
	ns.roster.Store(roster)
	return nil
}
