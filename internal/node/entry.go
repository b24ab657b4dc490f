package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// A write by placement writer is two records of one version: the record, in a shard, and
// its entry, in the set of the directory.

// Entry is the entry of a record that Make has made, in the set of the directory that r is.
func (r *Remote) Entry(record *dbadapter.Record, shard placement.Shard) (*dbadapter.Record, error) {
	entries, err := r.EntriesFor([]*dbadapter.Record{record}, []placement.Shard{shard})
	if err != nil {
		return nil, err
	}
	return &entries[0], nil
}

// Recede takes a record whose first write has lost out of the set: it writes a tombstone that takes
// the record's place and does not supersede it, so that each host lists it as a conflict. false: the
// set holds another record by now, or the tombstone would come too late for what this node has said
// to hold; then nothing is written.
//
// The tombstone has the least version that takes the record's place: a later write of the key, of
// which this host has not heard yet, stands. Its incarnation is its own: one of this node's would
// supersede what this node wrote. date, if not 0, is that of what the record recedes before, which is later by its version alone: the
// incarnation says so, and a dated record that is later than the date is listed, too.
//
// A host of the shard no longer does so, too: what a former member wrote the hosts decline.
func (set *Set) Recede(ctx context.Context, lost *dbadapter.Record, date dbadapter.Timestamp) (bool, error) {
	version, err := set.leastBehind(lost)
	if err != nil {
		return false, err
	}
	if date != 0 {
		version.Incarnation = set.ns.lateIncarnation(lost.Key, version.Clock, date.Time())
	}
	placed, err := set.over(ctx, lost, &dbadapter.Record{Key: lost.Key, Deleted: true, Version: version})
	if errors.Is(err, dbadapter.ErrConflict) {
		return false, nil
	}
	return placed, err
}

// leastBehind is the least version of this node's own that may take the place of a record that is held:
// later than that, and than what this node has promised to hold all up to. Its incarnation is drawn. ErrDenied:
// this node has no right to write.
func (set *Set) leastBehind(held *dbadapter.Record) (v dbadapter.Version, err error) {
	ns := set.ns
	ns.updating.Lock()
	v.Clock = max(held.Version.Clock, set.vouching.mark.Floor, set.vouching.mark.Pledged) + 1
	ns.updating.Unlock()
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

// over puts a record of this node's in the place of one that is held, also at a host of the shard no
// more. false: it is not admitted, as one that is sent from elsewhere would not be. dbadapter.ErrConflict:
// another one is held by now.
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
	a.way, a.began, a.over = byRoute, noTerm, &held.Version
	if err := set.let(ctx, set.past(), a); err != nil {
		return false, err
	}
	return a.verdicts[0].Reason == 0 && a.verdicts[0].Result == dbadapter.Applied, nil
}

// HoldHere is AskHold and Hold with this node as the host: it admits a record that it has
// made as one that another node offers.
func (r *Remote) HoldHere(ctx context.Context, record *dbadapter.Record, how route.Manner) (route.Outcome, error) {
	q := r.askHold(record, how)
	said, err := (&Routed{ns: r.ns, remote: r.ns.node.ID}).hold(ctx, q)
	if err != nil {
		return route.Outcome{}, err
	}
	return r.outcome(said, q)
}

// Settles reports whether this node is the one of the shard's hosts that carries out what becomes of
// the key's record: the first of those that are connected and may write.
func (r *Remote) Settles(connected func(ID) bool) bool {
	members := r.ns.Members()
	for _, id := range r.hosts {
		self := id == r.ns.node.ID
		if m, ok := members.Member(id); ok && m.Role != RoleRead && (self || connected(id)) {
			return self
		}
	}
	return false
}

// OwnShard is the shard in which this node writes a key that has none: the one that it is
// preferred in of those that it hosts, by the layout that counts; the key's home, if it hosts
// none.
func (ns *Namespace) OwnShard(key []byte) placement.Shard {
	layout := ns.placed.Load().layout
	if layout == nil {
		return ns.Home(key)
	}
	second, found := ns.Home(key), false
	for s := range placement.Shard(ns.rule.Shards) {
		switch hosts := layout.Hosts(s); {
		case len(hosts) > 0 && hosts[0] == ns.node.ID:
			return s
		case !found && layout.Has(s, ns.node.ID):
			second, found = s, true
		}
	}
	return second
}
