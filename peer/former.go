package peer

import (
	"encoding/hex"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
)

// Former lists the nodes that were members, by id, with the admin that ended the
// membership. A node that was removed and admitted again is in Members alone.
func (ns *Namespace) Former() []status.FormerMember {
	list := []status.FormerMember{}
	for _, f := range ns.core.Members().FormerMembers() {
		list = append(list, status.FormerMember{ID: ID(f.ID), By: ID(f.RemovedBy), At: f.At.Time()})
	}
	return list
}

// Voided lists the changes of the members that do not count, so that an admin can
// make those that were meant again.
func (ns *Namespace) Voided() []status.VoidStatement {
	list := []status.VoidStatement{}
	for _, v := range ns.core.Members().Voided() {
		one := status.VoidStatement{
			Hash: hex.EncodeToString(v.Hash[:]), Kind: v.Kind.String(), By: ID(v.Author), At: v.At.Time(), Subject: ID(v.Subject),
		}
		if v.Kind == roster.Grant {
			one.Role = v.Role.String()
		}
		list = append(list, one)
	}
	return list
}
