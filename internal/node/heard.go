package node

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// heard notes what the greeting of a data sync shows of the peer. It shows whether
// two nodes run with its identity, and how far its clock is away. The time left is
// when this node's Hello left, if this node began the sync. Otherwise it is zero,
// since then one way alone was measured. The error is ErrTwin while two nodes run:
// neither is synced with until one has been silent for TwinLife.
func (ns *Namespace) heard(remote ID, theirs *wire.Greeting, left time.Time) error {
	now := ns.node.Now()
	if !left.IsZero() {
		ns.node.offsets.note(remote, theirs.Time, left, now)
	}
	ns.twins.note(remote, theirs, now, ns.Members().Policy().MaxSkew)
	t, two := ns.twins.twin(remote, now)
	if !two {
		return nil
	}
	return fmt.Errorf("%w: %s greeted as %016x at %s and as %016x at %s; stop one of the two, and give it an identity of its own before it runs again (syncd init --new-identity); the other is synced with again %.0f minutes later",
		reconcile.ErrTwin, remote, t.Incarnations[0], t.Heard[0].Format(time.TimeOnly), t.Incarnations[1], t.Heard[1].Format(time.TimeOnly), TwinLife.Minutes())
}
