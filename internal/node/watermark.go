package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/watermark"
)

// gc is a set's watermark with what it needs of the node. That is a durable
// state, the clock, the list of members and the pledges in the control namespace.
// Its lock guards what has none of its own.
type gc struct {
	sync.Mutex
	mark watermark.Watermark
	// ceiling is held while a reading of the clock is made durable, or the ceiling is
	// lowered. It comes before commits.
	ceiling sync.Mutex
	// floor is the one that admissions hold records against, under commits.
	floor atomic.Uint64
	// recovers: the node may lack what it, or the members, once held.
	recovers atomic.Bool
	// renounces: own records are to be set aside, by RightLost.
	renounces atomic.Bool
	// unsaved: what is durable lags behind mark, which was made safer.
	unsaved bool
	// synced is when a sync with each member ended well.
	synced map[ID]time.Time
	// pledged is when this node pledged last.
	pledged time.Time
	waiting watermark.Waiting
}

// ceilingStep is by how much more than it says a reading of the clock is made
// durable, so that not every sync writes. A restart goes on from there: it is far
// below what any skew allows, and above the interval of any sensible schedule.
const ceilingStep = 10 * time.Second

// tau reads the clock for a snapshot. Each record that this node has written with a
// version up to the reading is committed. It makes no version up to the reading any
// more, also after a restart. It is 0 while the clock is further ahead of the
// machine's than the namespace allows: the members would not believe it.
//
// The caller holds none of commits, updating and gc.
func (set *Set) tau(ctx context.Context) (dbadapter.Timestamp, error) {
	set.gc.ceiling.Lock()
	defer set.gc.ceiling.Unlock()
	set.commits.Lock()
	t := dbadapter.Timestamp(set.ns.clock.Read())
	set.commits.Unlock()
	now, skew := set.ns.node.Now(), set.ns.Members().Policy().MaxSkew
	if hlc.Check(t.Time(), now, skew) != nil {
		return 0, nil
	}
	if t <= set.Store.Ceiling() {
		return t, nil
	}
	return t, set.Store.Raise(ctx, max(t, dbadapter.TimestampAt(now.Add(min(ceilingStep, skew/2)))))
}

// lowerCeiling makes durable what the clock really said last, for a node that is
// about to be closed in order. Opened again, it goes on from there, and not from
// seconds ahead. There its writes would win over what others write meanwhile.
func (set *Set) lowerCeiling(ctx context.Context) error {
	set.gc.ceiling.Lock()
	defer set.gc.ceiling.Unlock()
	set.commits.Lock()
	defer set.commits.Unlock()
	return set.Store.Lower(ctx, max(dbadapter.Timestamp(set.ns.clock.Latest()), set.Store.Latest()))
}

// startMark takes up the watermark where the last process left it.
func (set *Set) startMark(ctx context.Context, s *State) error {
	durable := set.markState(s)
	set.gc.mark = watermark.New(set.ns.node.ID, set.ns.rule != nil, *durable)
	set.ns.clock.Observe(hlc.Timestamp(max(durable.Pledged, durable.Floor, durable.Proved, durable.RightLost)))
	snap, err := set.ns.Control.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	var failed error
	err = set.updateMark(func(w *watermark.Watermark) bool {
		changed := set.relist(w)
		for r, err := range snap.Scan(ctx, []byte{kindPledge}, nil) {
			if err != nil {
				failed = err
				return changed
			}
			changed = set.receive(w, &r.Record) || changed
		}
		w.Resume()
		return changed
	})
	return errors.Join(err, failed)
}

// updateMark changes the watermark, and makes what fn says has changed durable before it
// returns. What could not be made durable is taken back, but for a recovery and a
// loss of the right to write, which are the safe side.
func (set *Set) updateMark(fn func(w *watermark.Watermark) (changed bool)) error {
	set.gc.Lock()
	defer set.gc.Unlock()
	return set.updateMarkLocked(fn)
}

// updateMarkLocked is updateMark for a caller that holds gc.
func (set *Set) updateMarkLocked(fn func(w *watermark.Watermark) (changed bool)) error {
	if set.tenure.ended() {
		return dbadapter.ErrClosed
	}
	g := &set.gc
	before := g.mark.State()
	changed := fn(&g.mark) || g.unsaved
	defer set.shows()
	if !changed {
		return nil
	}
	err := set.ns.update(func(s *State) error {
		*set.markState(s) = g.mark.State()
		return nil
	})
	if g.unsaved = err != nil; g.unsaved {
		g.mark.Restore(before)
	}
	return err
}

// shows follows a change of the watermark in what is read without its lock. gc is held.
func (set *Set) shows() {
	g := &set.gc
	now := g.mark.State()
	g.floor.Store(uint64(g.mark.Enforced()))
	g.recovers.Store(now.Recovering)
	set.tenure.is(!now.Recovering, now.Lost, set.ns.node.elapsed())
	g.renounces.Store(now.RightLost != 0)
}

// relist takes the list of members as it is now. Callers of it hold updating, so that no earlier
// list takes the place of a later one.
func (set *Set) relist(w *watermark.Watermark) (changed bool) {
	members := set.ns.Members()
	list, active := set.waitedFor(members)
	reading := dbadapter.Timestamp(set.ns.clock.Latest())
	changed = w.SetMembers(watermark.Members{
		List: list, Active: active, Alone: members.alone(set.ns.node.ID), Epoch: uint64(members.Epoch(set.ns.node.ID)),
	}, reading+1)
	if whole, floor := set.tenure.becomesWhole(); whole {
		changed = w.Whole(min(floor, reading)) || changed
	}
	if set.ns.rule == nil { // what hosts of shards hold other hosts take over
		right := members.Right(set.ns.node.ID)
		if len(set.ns.state.Load().Removed) > 0 {
			right = 0
		}
		changed = w.SetRight(right, reading) || changed
	}
	return changed
}

// relisted follows a change of the list of members. updating is held.
func (set *Set) relisted() error {
	set.gc.waiting.Again() // records of writers that lost their right
	return set.updateMark(set.relist)
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

// pledge tells the members what this node holds, if one of them waits for that. A
// process that has met no other member yet does not. It may be of a copy from
// before, and its pledge would take the place of the one from which it could tell
// that.
func (set *Set) pledge(ctx context.Context) error {
	tau, err := set.tau(ctx)
	if err != nil || tau == 0 {
		return err
	}
	set.ns.updating.Lock()
	defer set.ns.updating.Unlock()
	g := &set.gc
	g.Lock()
	defer g.Unlock()
	collectable := g.waiting.Collectable(tau)
	if len(g.synced) == 0 && g.mark.HasOthers() || !g.mark.PledgeDue(tau, collectable) {
		return nil
	}
	var p *watermark.Pledge
	if err := set.updateMarkLocked(func(w *watermark.Watermark) bool {
		p = w.Pledge(tau, collectable)
		return true
	}); err != nil {
		return err
	}
	value, err := p.Encode()
	if err != nil {
		return err
	}
	g.pledged = set.ns.node.Now()
	r, err := set.ns.sayLocked(ctx, set.pledgeKey(), value)
	if err != nil {
		return err
	}
	return set.updateMarkLocked(func(w *watermark.Watermark) bool { return set.receive(w, r) })
}

// mayPledge reports whether it is time for another pledge.
func (set *Set) mayPledge() bool {
	set.gc.Lock()
	defer set.gc.Unlock()
	if set.gc.mark.PledgeUrgent() {
		return true
	}
	since := set.ns.node.Now().Sub(set.gc.pledged)
	return since < 0 || since >= pledgeIntervals*set.ns.node.Interval
}

// hold keeps the promise below a clock, durably, for dated records that are about
// to be committed. The least of their clocks is own. commits is held.
func (set *Set) hold(clock, own dbadapter.Timestamp) error {
	at := set.snapshotFromNow()
	set.gc.Lock()
	defer set.gc.Unlock()
	return set.holdLocked(clock, own, at)
}

// snapshotFromNow is a reading that only a snapshot from now on greets with. commits is held.
func (set *Set) snapshotFromNow() dbadapter.Timestamp {
	return dbadapter.Timestamp(set.ns.clock.Latest()) + 1
}

// holdLocked is hold for a caller that holds gc, too. The least clock of
// those records that are this node's own is own, and 0 if none is.
func (set *Set) holdLocked(clock, own, at dbadapter.Timestamp) error {
	return set.updateMarkLocked(func(w *watermark.Watermark) bool {
		return w.Hold(clock, own, at, dbadapter.TimestampAt(time.Unix(0, 0).Add(ceilingStep)))
	})
}

// pledgedUpTo is the greatest promise that this node has made.
func (ns *Namespace) pledgedUpTo() (promise dbadapter.Timestamp) {
	for _, set := range ns.Sets() {
		set.gc.Lock()
		promise = max(promise, set.gc.mark.State().Pledged)
		set.gc.Unlock()
	}
	if ns.rule != nil { // of shards that were left, too: also of one that has left just now
		promise = max(promise, ns.state.Load().Vouched.Pledged)
	}
	return promise
}

// Floor is up to when this node has collected deletions of the set.
func (set *Set) Floor() dbadapter.Timestamp { return dbadapter.Timestamp(set.gc.floor.Load()) }

// UpTo is up to when this node takes no record of the set: it has promised to hold all.
func (set *Set) UpTo() dbadapter.Timestamp {
	set.gc.Lock()
	defer set.gc.Unlock()
	return set.gc.mark.UpTo()
}
