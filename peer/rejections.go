package peer

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Rejection is a record that a peer offered and this node refused.
type Rejection struct {
	Key     []byte
	Version dbadapter.Version
	// Peer is the member that offered it, which need not be its writer.
	Peer   ID
	Reason string
	// Time is when it was refused.
	Time time.Time
}

// Rejected lists what was refused of what peers offered, the oldest first.
func (ns *Namespace) Rejected() []Rejection {
	list := ns.set.Rejected()
	out := make([]Rejection, len(list))
	for i, r := range list {
		out[i] = Rejection{Key: r.Key, Version: r.Version, Peer: ID(r.From), Reason: r.Reason, Time: r.Time}
	}
	return out
}
