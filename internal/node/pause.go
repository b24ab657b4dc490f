package node

import (
	"fmt"

	"github.com/syncd-io/syncd/reconcile"
)

// SetPaused takes the namespace out of all syncs, of its records and of its list of
// members, or lets it take part again. It is durable when SetPaused returns. Syncs that
// run are the driver's to end.
func (ns *Namespace) SetPaused(paused bool) error {
	if ns.Paused() == paused {
		return nil
	}
	if err := ns.update(func(s *State) error { s.Paused = paused; return nil }); err != nil {
		return err
	}
	ns.node.Schedule.Wake()
	for _, set := range ns.Sets() {
		set.pushable()
	}
	return nil
}

// Paused reports whether the namespace takes part in no syncs.
func (ns *Namespace) Paused() bool { return ns.state.Load().Paused }

// PausedWith is ErrPaused where the namespace takes part in no syncs with a peer: it is
// paused, or the peer is. A peer that calls is told no more than that; it must be known
// to be a member first.
func (ns *Namespace) PausedWith(remote ID) error {
	if ns.Paused() {
		return fmt.Errorf("%w: the namespace is paused on this node; resume it with: syncd resume %s", reconcile.ErrPaused, ns.Members().Name())
	}
	return ns.peerPaused(remote)
}

// peerPaused is ErrPaused where the peer is paused. Routed questions go on while the namespace
// is: by them members read and write its shards.
func (ns *Namespace) peerPaused(remote ID) error {
	if ns.node.Config.Paused != nil && ns.node.Config.Paused(remote) {
		return fmt.Errorf("%w: the peer is paused on this node; resume it with: syncd peer resume %s", reconcile.ErrPaused, remote)
	}
	return nil
}
