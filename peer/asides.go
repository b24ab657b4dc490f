package peer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// asideLife is for how long a peer's refusal of a record is taken for final.
// Then the record is offered again: the peer may know its writer by now, or
// have set its clock. Longer would hide such a change from who made it, shorter
// would send refused records with every sync.
const asideLife = 5 * time.Minute

// asides remembers what each peer has refused of a namespace's records.
type asides struct {
	mu sync.Mutex
	of map[ID]aside
}

type aside struct {
	*reconcile.Declined
	until time.Time
}

// get returns what is remembered of a peer, to be added to by a sync.
func (as *asides) get(id ID, now time.Time) *reconcile.Declined {
	as.mu.Lock()
	defer as.mu.Unlock()
	a, ok := as.of[id]
	if !ok || !now.Before(a.until) {
		if as.of == nil {
			as.of = map[ID]aside{}
		}
		a = aside{new(reconcile.Declined), now.Add(asideLife)}
		as.of[id] = a
	}
	return a.Declined
}

// forget drops what a peer has refused; its view of the members has changed.
func (as *asides) forget() {
	as.mu.Lock()
	defer as.mu.Unlock()
	clear(as.of)
}

// RefusedBy lists the records of this node that a peer has refused lately, and
// why, by their keys: they are what keeps the two from being equal. The reason
// is the peer's, in short; its own list (Rejected) says more.
func (ns *Namespace) RefusedBy(ctx context.Context, id ID) ([]Rejection, error) {
	if err := ns.enter("look up refusals"); err != nil {
		return nil, err
	}
	defer ns.gate.leave()
	snap, err := ns.store.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("look up what %s has refused of %s: %w", id, ns.Name(), err)
	}
	defer snap.Close()
	var out []Rejection
	now := ns.node.now()
	for _, r := range ns.asides.get(id, now).List() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		bucket, err := snap.Bucket(r.Index)
		if err != nil {
			return nil, fmt.Errorf("look up what %s has refused of %s: %w", id, ns.Name(), err)
		}
		for i := range bucket {
			// Only what is still held as it was refused.
			if dbadapter.PairOf(ns.keys.Hasher, &bucket[i]).Checksum == r.Checksum {
				out = append(out, Rejection{Key: bucket[i].Key, Version: bucket[i].Version, Peer: id, Reason: r.Reason.String(), Time: now.UTC()})
			}
		}
	}
	slices.SortFunc(out, func(a, b Rejection) int { return cmp.Compare(string(a.Key), string(b.Key)) })
	return out, nil
}
