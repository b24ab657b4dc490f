package node

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/peer/status"
)

// Rejected lists what this node refused of what peers offered, the oldest first.
func (set *Set) Rejected() []refusals.Rejection { return set.rejected.List() }

// RejectedCount is how many rejections are remembered.
func (set *Set) RejectedCount() int { return set.rejected.Count() }

// reject remembers a record, which may be one that cannot be stored.
func (set *Set) reject(r *dbadapter.Hashed, from ID, why *refusals.Refusal) {
	if set.ns.node.Refused != nil {
		set.ns.node.Refused(why.Err)
	}
	set.rejected.Add(r, from, why.Reason, why.Err, set.ns.node.Now())
}

// outdated forgets those of the records refused whose keys hold a later version already: a
// peer has not heard of that yet. What cannot be read stays listed.
func (set *Set) outdated(records []dbadapter.Hashed, refused []*refusals.Refusal) {
	snap, err := set.Store.Snapshot()
	if err != nil {
		return
	}
	defer snap.Close()
	for i := range records {
		if refused[i] == nil {
			continue
		}
		if held, err := snap.Get(records[i].Key); err == nil {
			set.rejected.Held(&dbadapter.Hashed{Record: held, Index: records[i].Index})
		}
	}
}

// written takes note of a commit of records.
func (set *Set) written(writes []dbadapter.Write, outcomes []dbadapter.Outcome) {
	set.gc.Waiting().Committed(writes, outcomes)
	for i, o := range outcomes {
		if (o.Result == dbadapter.Applied || o.Result == dbadapter.Same) && !writes[i].Action.Removes() {
			set.rejected.Held(&writes[i].Record)
		}
	}
}

// Declined lists the peers that decline what this node wrote for its time, by id.
func (set *Set) Declined() []status.DeclinedBy { return set.declined.Peers(set.ns.self) }

// doubt tells the driver, after a sync, that a peer declines for its time what this
// node wrote. It does so once, until the two have been equal again.
func (set *Set) doubt(remote ID, equal bool) {
	if n := set.declined.Doubts(remote, set.ns.self, equal); n > 0 && set.ns.node.Doubted != nil {
		set.ns.node.Doubted(set, status.DeclinedBy{Peer: status.ID(remote), Records: n})
	}
}
