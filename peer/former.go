package peer

import (
	"encoding/hex"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
)

// FormerMember is a node that was a member and has lost its role.
type FormerMember struct {
	ID ID
	By ID        // ended the membership, or wrote down that it had expired
	At time.Time // by the clock of By
}

// Former lists the nodes that were members, by id, with the admin that ended the
// membership. A node that was removed and admitted again is in Members alone.
func (ns *Namespace) Former() []FormerMember {
	list := []FormerMember{}
	for _, f := range ns.core.Members().FormerMembers() {
		list = append(list, FormerMember{ID(f.ID), ID(f.RemovedBy), f.At.Time()})
	}
	return list
}

// VoidStatement is a change of the members that does not count. Its author lost the
// right to it by a change that was made at the same time, elsewhere.
type VoidStatement struct {
	// Hash names the statement.
	Hash string
	// Kind is what it would have done: grant, remove, expire, lapse.
	Kind    string
	By      ID
	At      time.Time // by the clock of By
	Subject ID
	// Role is that of a grant; else 0.
	Role Role
}

// Voided lists the changes of the members that do not count, so that an admin can
// make those that were meant again.
func (ns *Namespace) Voided() []VoidStatement {
	list := []VoidStatement{}
	for _, v := range ns.core.Members().Voided() {
		one := VoidStatement{
			Hash: hex.EncodeToString(v.Hash[:]), Kind: v.Kind.String(), By: ID(v.Author), At: v.At.Time(), Subject: ID(v.Subject),
		}
		if v.Kind == roster.Grant {
			one.Role = Role(v.Role)
		}
		list = append(list, one)
	}
	return list
}

// lastSyncs is when the data were last synced well with each peer, since the
// namespace was opened.
type lastSyncs struct {
	mu sync.Mutex
	at map[ID]time.Time
}

// note is called with members alone, so that they bound it.
func (l *lastSyncs) note(id ID, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[ID]time.Time{}
	}
	l.at[id] = at
}

func (l *lastSyncs) with(id ID) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at[id]
}
