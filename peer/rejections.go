package peer

import (
	"slices"
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
	out := []Rejection{}
	for _, sh := range ns.shards() {
		for _, r := range sh.set.Rejected() {
			key, users := ns.core.UsersKey(r.Key)
			if !users {
				continue
			}
			out = append(out, Rejection{Key: key, Version: r.Version, Peer: ID(r.From), Reason: r.Reason, Time: r.Time})
		}
	}
	if len(ns.shards()) > 1 { // the times of one set go back where the clock does
		slices.SortStableFunc(out, func(a, b Rejection) int { return a.Time.Compare(b.Time) })
	}
	return out
}
