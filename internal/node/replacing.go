package node

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// leastBehind is the least version of this node's own that may take the place of a
// record that is held. It is later than that, and than what this node has promised
// to hold all up to. Its incarnation is drawn. The error is ErrDenied if this node
// has no right to write.
func (set *Set) leastBehind(held *dbadapter.Record) (v dbadapter.Version, err error) {
	ns := set.ns
	set.gc.Lock()
	v.Clock = max(held.Version.Clock, set.gc.mark.UpTo()) + 1
	set.gc.Unlock()
	if members := ns.Members(); !members.Policy().Unsigned {
		least, ok := members.WritesFrom(ns.self, v.Clock)
		if !ok {
			return v, fmt.Errorf("%w: this node has no right to write at %s", ErrDenied, v.Clock.Time().UTC().Format(time.RFC3339))
		}
		v.Clock = least
	}
	v.Writer, v.Incarnation = ns.self, ns.node.Random(ForNonce)
	return v, nil
}

// over puts a record of this node's in the place of one that is held. It does so
// also at a host of the shard no more. It reports false if the record is not
// admitted, as one that is sent from elsewhere would not be. The error is
// dbadapter.ErrConflict if another record is held by now.
func (set *Set) over(ctx context.Context, held, r *dbadapter.Record) (bool, error) {
	hashed, err := dbadapter.Hash(set.Keys.Hasher, *r)
	if err != nil {
		return false, err
	}
	writes := []dbadapter.Write{{Record: hashed}}
	if err := set.authorize(writes); err != nil {
		return false, err
	}
	a := set.arrived(set.ns.Members(), set.ns.node.ID, 0, set.ns.node.Now(), []dbadapter.Hashed{writes[0].Record})
	a.way, a.began, a.held, a.adopts = byRoute, noTerm, []*dbadapter.Version{&held.Version}, true
	if err := set.let(ctx, set.past(), a); err != nil {
		return false, err
	}
	return a.verdicts[0].Reason == 0 && a.verdicts[0].Result == dbadapter.Applied, nil
}
