package check

import (
	"slices"
	"time"
)

// What is nowhere by a locator: a read at level one asks no host then.

// heldAt is a write that hosts held durably at a time of the simulation. disks and voids count
// the new disks and the failures that the shard's hosts had had by then.
type heldAt struct {
	key   string
	s     stamp
	at    time.Duration
	hosts []int
	disks []int
	voids int
}

// Nowhere judges a read that a locator has answered with nothing. heard is when it has asked
// the host, for the last time, what of the shard's keys there are. What the host held by then
// is not nowhere; what others alone held may be, also a write of the node that reads.
func (h *History) Nowhere(r *Request, host int, heard time.Duration) {
	voids := h.shards.at(h.shards.home(r.Key)).voids
	for i := range h.helds {
		one := &h.helds[i]
		at := slices.Index(one.hosts, host)
		if one.key == r.Key && one.at < heard && at >= 0 && one.disks[at] == h.disks[host] && one.voids == voids && !h.mayBeGone(r.Key, one.s) {
			h.found.say(Answer, r.Node, r.Key, "it is nowhere, as node %d said at %v; that held %s, which was acknowledged at %v", host, heard, one.s, one.at)
		}
	}
}
