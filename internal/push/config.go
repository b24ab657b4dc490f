package push

import (
	"time"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// Config says whether and how fast what a node writes is pushed to the other members.
type Config struct {
	// On: the driver carries pushes.
	On bool
	// Send, if not 0, is how many bytes all copies of pushes that the node sends take in a
	// second, at most.
	Send int
}

const (
	// Batch is how long a write waits for others to share its message.
	Batch = 5 * time.Millisecond
	// Quiet is for how long a set must not have changed before its digest is sent.
	Quiet = time.Second
	// Busy is after what time from a push a node sends the number of its last one
	// although the set is not quiet. It is drawn from half of Busy to one and a
	// half. So a member that has missed the push learns of it. A set that is quiet sends
	// its digest before.
	Busy = 6 * time.Second
	// Pause is the least time between two syncs with a peer that pushes bring about.
	Pause = 500 * time.Millisecond
	// Rate is how many bytes of records are pushed in a second, at most, and a
	// quarter of it at once. For what is beyond, a sync is asked for.
	Rate = 4 << 20
)

// MeshCopies is how many copies of a push its origin sends at most where others
// pass it on. The driver's mesh has no more peers.
const MeshCopies = 4

// rate is how many bytes of records are pushed in a second.
func (p *Pusher) rate() int {
	c := p.set.Config
	if c.Send == 0 {
		return Rate
	}
	copies := p.set.Others()
	if copies >= wire.MaxDirect {
		copies = MeshCopies
	}
	return min(Rate, c.Send/max(copies, 1))
}
