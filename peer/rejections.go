package peer

import (
	"slices"

	"github.com/syncd-io/syncd/peer/status"
)

// Rejected lists what was refused of what peers offered, the oldest first.
func (ns *Namespace) Rejected() []status.Rejection {
	out := []status.Rejection{}
	for _, sh := range ns.shards() {
		for _, r := range sh.set.Rejected() {
			key, users := ns.core.UsersKey(r.Key)
			if !users {
				continue
			}
			out = append(out, status.Rejection{Key: key, Version: r.Version, Peer: ID(r.From), Reason: r.Reason, Time: r.Time})
		}
	}
	if len(ns.shards()) > 1 { // the times of one set go back where the clock does
		slices.SortStableFunc(out, func(a, b status.Rejection) int { return a.Time.Compare(b.Time) })
	}
	return out
}
