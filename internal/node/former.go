package node

import (
	"context"
	"errors"

	"github.com/syncd-io/syncd/dbadapter"
)

// dropFormer takes out of the control namespace what former members have said of
// themselves. A node that joins later declines it, so the two would never be equal.
// Each turn of theirs would begin with the control namespace. What this node has
// said it keeps: it may be a member again.
func (ns *Namespace) dropFormer(ctx context.Context) error {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	members := ns.Members()
	if ns.over || ns.dropped == members.Digest() {
		return nil
	}
	var writes []dbadapter.Write
	for kind := range ofMembers {
		for r, err := range ns.ofKind(ctx, kind) {
			if err != nil {
				return err
			}
			if id, _ := ns.about(r.Key); id != ns.node.ID && !members.Has(id, RoleRead) {
				writes = append(writes, dbadapter.Write{Record: r, Action: dbadapter.Collect})
			}
		}
	}
	_, err := ns.Control.apply(ctx, writes)
	if err != nil {
		return err
	}
	for i := range writes {
		if r := &writes[i].Record; r.Key[0] == kindAddresses {
			err = errors.Join(err, ns.hearUnpledged(ID(r.Key[1:]), false))
		}
	}
	if err != nil {
		return err
	}
	ns.dropped = members.Digest()
	return nil
}
