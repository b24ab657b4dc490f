package peer

import (
	"time"

	"github.com/syncd-io/syncd/internal/clocks"
)

// TwinLife is how long one of two nodes with one identity must have been silent
// before the other is synced with again.
const TwinLife = clocks.TwinLife

// Twin is a member whose identity two nodes run with: a copy of a data folder was
// started beside the original. Records of the one can take the place of the other's. So
// this node syncs with neither until one has been silent for TwinLife.
type Twin struct {
	ID ID
	// Heard is when each of the two was heard last, the later one first.
	Heard [2]time.Time
}

// Twinned is what a peer has reported to this node of a twin.
type Twinned struct {
	By ID
	At time.Time
}

func (ns *Namespace) twins() []Twin {
	list := []Twin{}
	for _, t := range ns.core.Twins() {
		list = append(list, Twin{ID(t.Peer), t.At})
	}
	return list
}

func (ns *Namespace) twinned() *Twinned {
	by, at, ok := ns.core.Copied()
	if !ok {
		return nil
	}
	return &Twinned{ID(by), at}
}

// ClockOffset is how far this machine's clock is ahead of its peers'.
type ClockOffset struct {
	// By is the distance to the median of the peers' clocks; less than 0 if this
	// machine's is behind. The truth lies within Error of it.
	By, Error time.Duration
	// Peers is how many clocks were measured within the last hour.
	Peers int
	// Off: that is more than time servers leave, whatever the network has added.
	Off bool
}

// ClockOffset compares this machine's clock with those of the peers that this node has
// synced with lately. The result ok is false if there was no such peer.
func (n *Node) ClockOffset() (o ClockOffset, ok bool) {
	own, peers := n.core.ClockOffset()
	return ClockOffset{own.By, own.Error, peers, own.Off()}, peers > 0
}
