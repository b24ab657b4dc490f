package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Member is a node that this node deals with in a namespace.
type Member struct {
	ID     ID
	Role   Role
	Writer dbadapter.WriterID // under which versions name the node
	Since  time.Time
}

// Members is one reading of a namespace's state. It never changes, so that a
// sync sees one list from its beginning to its end; a change makes a new one.
type Members struct {
	state    *State
	list     []Member // by id
	byID     map[ID]Member
	byWriter map[dbadapter.WriterID]Member
}

func newMembers(s *State) (*Members, error) {
	m := &Members{state: s, byID: map[ID]Member{}, byWriter: map[dbadapter.WriterID]Member{}}
	for _, stored := range s.Members {
		one, err := stored.member()
		if err != nil {
			return nil, err
		}
		if other, taken := m.byWriter[one.Writer]; taken {
			return nil, fmt.Errorf("%w: members %s and %s have the same 64-bit writer id; one of them needs a new key", ErrDenied, other.ID, one.ID)
		}
		m.byID[one.ID], m.byWriter[one.Writer] = one, one
		m.list = append(m.list, one)
	}
	slices.SortFunc(m.list, func(a, b Member) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return m, nil
}

// List are the members by id. It must not be changed.
func (m *Members) List() []Member { return m.list }

// Role is a node's role; 0 for a node that is not a member.
func (m *Members) Role(id ID) Role { return m.byID[id].Role }

// Has reports whether a node has at least a role.
func (m *Members) Has(id ID, role Role) bool { return m.byID[id].Role >= role }

// Policy is what the members have agreed on.
func (m *Members) Policy() Policy { return m.state.Policy.policy() }

// Name is the namespace's alias on this node.
func (m *Members) Name() string { return m.state.Name }
