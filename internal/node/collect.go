package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/gc"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/peer/status"
)

// newCollector is the collector of the set, which is open.
func (set *Set) newCollector() *gc.Collector {
	ns := set.ns
	return gc.New(gc.Config{
		Self: ns.node.ID, Sharded: ns.rule != nil, Store: set.Store, Clock: ns.clock, Commits: &set.commits,
		Now: func() time.Time { return ns.node.Now() }, Interval: ns.node.interval, Group: ns.Group, PledgeKey: set.pledgeKey(),
		Save: func(w watermark.State) error {
			if set.tenure.ended() {
				return dbadapter.ErrClosed
			}
			return ns.update(func(s *State) error { *set.markState(s) = w; return nil })
		},
		Follow: func(w watermark.State) { set.tenure.is(!w.Recovering, w.Lost, ns.node.elapsed()) },
		Judge:  func() gc.Judge { return judge{set, ns.Members()} },
		Apply:  set.Apply,
	})
}

// startCollector takes up the watermark where the last process left it.
func (set *Set) startCollector(ctx context.Context, s *State) error {
	snap, err := set.ns.Control.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	var failed error
	err = set.gc.Start(*set.markState(s), func(w *watermark.Watermark) bool {
		changed := set.relist(w)
		for r, err := range snap.Scan(ctx, []byte{kindPledge}, nil) {
			if err != nil {
				failed = err
				return changed
			}
			changed = set.receive(w, &r.Record) || changed
		}
		return changed
	})
	return errors.Join(err, failed)
}

// relist takes the list of members as it is now. Callers of it hold the group, so that no earlier
// list takes the place of a later one.
func (set *Set) relist(w *watermark.Watermark) (changed bool) {
	members := set.ns.Members()
	list, active := set.waitedFor(members)
	reading := dbadapter.Timestamp(set.ns.clock.Latest())
	changed = w.SetMembers(watermark.Members{
		List: list, Active: active, Alone: members.Alone(set.ns.node.ID), Epoch: uint64(members.Epoch(set.ns.node.ID)),
	}, reading+1)
	if whole, floor := set.tenure.becomesWhole(); whole {
		changed = w.Whole(min(floor, reading)) || changed
	}
	if set.ns.rule == nil { // what hosts of shards hold other hosts take over
		right := members.Right(set.ns.node.ID)
		if set.ns.ShownRemoval() {
			right = 0
		}
		changed = w.SetRight(right, reading) || changed
	}
	return changed
}

// relisted follows a change of the list of members. The group is held.
func (set *Set) relisted() error {
	set.gc.Waiting().Again() // records of writers that lost their right
	return set.gc.Update(set.relist)
}

// receive takes the record of a pledge, which has been examined, if it is about this set.
func (set *Set) receive(w *watermark.Watermark, r *dbadapter.Record) (changed bool) {
	by, shard := set.ns.about(r.Key)
	p, err := watermark.ParsePledge(r.Value)
	if err != nil || shard != set.shard {
		return false
	}
	changed = w.Receive(by, p, r.Version)
	if changed { // this node is a copy: what it makes now must be later
		set.ns.clock.Observe(hlc.Timestamp(max(r.Version.Clock, p.Promised)))
	}
	return changed
}

// Collection says how far the collection is, and what holds it back.
func (set *Set) Collection() status.Collection { return set.gc.Collection() }

// Collect takes out what all members are past, without waiting for the background,
// and tells the members what this node holds.
func (set *Set) Collect(ctx context.Context) (status.Swept, error) { return set.gc.Collect(ctx) }

// Left is what has left the set since the last call, by sweeps and at the end of syncs.
func (set *Set) Left() status.Swept { return set.gc.Left() }

// Floor is up to when this node has collected deletions of the set.
func (set *Set) Floor() dbadapter.Timestamp { return set.gc.Floor() }

// UpTo is up to when this node takes no record of the set: it has promised to hold all.
func (set *Set) UpTo() dbadapter.Timestamp { return set.gc.UpTo() }

// tend does what has become due in the collection.
func (set *Set) tend(ctx context.Context) (swept status.Swept, err error) {
	var counts bool
	failed := set.gc.Update(func(w *watermark.Watermark) bool {
		counts = w.Counts()
		return w.RecoverAlone()
	})
	if !counts && !set.ns.recovers() { // a member returns with all of its sets
		failed = errors.Join(failed, set.ns.Return(ctx)) // of no effect unless this node has lapsed
	}
	swept, err = set.gc.Tend(ctx)
	return swept, errors.Join(failed, err)
}

// pledgedUpTo is the greatest promise that this node has made.
func (ns *Namespace) pledgedUpTo() (promise dbadapter.Timestamp) {
	for _, set := range ns.Sets() {
		promise = max(promise, set.gc.UpTo())
	}
	if ns.rule != nil { // of shards that were left, too: also of one that has left just now
		promise = max(promise, ns.state.Load().Watermark.Pledged)
	}
	return promise
}

// judge judges the records of a set by a list of members.
type judge struct {
	set     *Set
	members *membership.Members
}

// Former reports whether the record's writer had not the right to write it.
func (j judge) Former(r *dbadapter.Record) bool { return former(j.members, r) }

// Own reports whether this node made the record.
func (j judge) Own(r *dbadapter.Record) bool { return j.set.ns.own(r) }

// Adopts reports whether this node writes such a record again in its own name.
func (j judge) Adopts(r *dbadapter.Record) bool {
	return j.members.Has(j.set.ns.node.ID, RoleWrite) && (j.set.ns.rule != nil || !j.Own(r))
}

// Adopt does so.
func (j judge) Adopt(ctx context.Context, r *dbadapter.Record) error { return j.set.adopt(ctx, r) }

// former reports whether the record's writer had not the right to write it, by the
// list of members as it is now. Other nodes decline it.
func former(m *membership.Members, r *dbadapter.Record) bool {
	by := r.Version.Writer
	if by == 0 {
		by = r.Signer
	}
	return !m.Policy().Unsigned && !m.MayWrite(by, r.Version.Clock)
}

// adopt writes a record again in this node's own name, unless it is not held any
// more, or it is too early for that. It is too early if the record is from the
// future. It is so, too, if this node's role begins later, given by an admin whose
// clock is ahead.
//
// It has the least version that takes the record's place. A write of now would win
// over all that members have written since the record, and have not heard of it. A
// host of the shard no longer adopts, too: the hosts would decline what it holds.
func (set *Set) adopt(ctx context.Context, of *dbadapter.Record) error {
	held, err := set.Held(of.Key)
	switch {
	case err != nil:
		return err
	case held == nil || held.Version != of.Version:
		return gc.ErrElsewhere
	}
	r := held.Clone()
	r.Signature, r.Signer = nil, 0
	if r.Version, err = set.leastBehind(held); errors.Is(err, ErrDenied) {
		return gc.ErrLater
	} else if err != nil {
		return err
	}
	r.Replace(held)
	switch placed, err := set.over(ctx, held, &r); {
	case errors.Is(err, dbadapter.ErrConflict):
		return gc.ErrElsewhere
	case errors.Is(err, ErrDenied):
		return gc.ErrLater
	case err != nil:
		return err
	case !placed:
		return gc.ErrLater
	}
	return nil
}

// leastBehind is the least version of this node's own that may take the place of a
// record that is held. It is later than that, and than what this node has promised
// to hold all up to. Its incarnation is drawn. The error is ErrDenied if this node
// has no right to write.
func (set *Set) leastBehind(held *dbadapter.Record) (v dbadapter.Version, err error) {
	ns := set.ns
	v.Clock = max(held.Version.Clock, set.gc.UpTo()) + 1
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
	a.way, a.began, a.Over, a.adopts = byRoute, noTerm, []*dbadapter.Version{&held.Version}, true
	if err := set.let(ctx, set.gc.Past(), a); err != nil {
		return false, err
	}
	return a.verdicts[0].Reason == 0 && a.verdicts[0].Result == dbadapter.Applied, nil
}
