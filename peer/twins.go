package peer

import (
	"github.com/syncd-io/syncd/peer/status"
)

func (ns *Namespace) twins() []status.Twin {
	list := []status.Twin{}
	for _, t := range ns.core.Twins() {
		list = append(list, status.Twin{ID: ID(t.Peer), Heard: t.At[:]})
	}
	return list
}

func (ns *Namespace) twinned() *status.Twinned {
	by, at, ok := ns.core.Copied()
	if !ok {
		return nil
	}
	return &status.Twinned{By: ID(by), At: at}
}

// ClockOffset compares this machine's clock with those of the peers that this node has
// synced with lately. The result ok is false if there was no such peer.
func (n *Node) ClockOffset() (o status.Clock, ok bool) {
	own, peers := n.core.ClockOffset()
	return status.Clock{By: own.By, Error: own.Error, Peers: peers, Off: own.Off()}, peers > 0
}
