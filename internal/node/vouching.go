package node

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
)

// vouching is a set's watermark with what it needs of the node. That is a durable
// state, the clock, the list of members and the pledges in the control namespace.
// Its lock guards what has none of its own.
type vouching struct {
	sync.Mutex
	mark watermark
	// ceiling is held while a reading of the clock is made durable, or the ceiling is
	// lowered. It comes before commits.
	ceiling sync.Mutex
	// floor is the one that admissions hold records against, under commits.
	floor atomic.Uint64
	// recovers: the node may lack what it, or the members, once held.
	recovers atomic.Bool
	// renounces: own records are to be set aside, by mark.Heard.
	renounces atomic.Bool
	// unsaved: what is durable lags behind mark, which was made safer.
	unsaved bool
	// heard is when a sync with each member ended well.
	heard map[ID]time.Time
	// pledged is when this node pledged last.
	pledged time.Time
	waiting waiting
	// rest is until when no further sweep begins in the background. Until soon not
	// even one begins that takes out all that waits, or that a peer is ahead with.
	rest, soon time.Time
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
// The caller holds none of commits, updating and vouching.
func (set *Set) tau(ctx context.Context) (dbadapter.Timestamp, error) {
	set.vouching.ceiling.Lock()
	defer set.vouching.ceiling.Unlock()
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
	set.vouching.ceiling.Lock()
	defer set.vouching.ceiling.Unlock()
	set.commits.Lock()
	defer set.commits.Unlock()
	return set.Store.Lower(ctx, max(dbadapter.Timestamp(set.ns.clock.Latest()), set.Store.Latest()))
}

// startVouching takes up the watermark where the last process left it.
func (set *Set) startVouching(ctx context.Context, s *State) error {
	v := &set.vouching
	v.mark = watermark{self: set.ns.node.ID, sharded: set.ns.rule != nil, Vouched: set.vouched(s).clone()}
	set.ns.clock.Observe(hlc.Timestamp(max(v.mark.Pledged, v.mark.Floor, v.mark.Proved, v.mark.Heard)))
	snap, err := set.ns.Control.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	var failed error
	err = set.vouch(func(w *watermark) bool {
		changed := set.relist(w)
		for r, err := range snap.Scan(ctx, []byte{kindPledge}, nil) {
			if err != nil {
				failed = err
				return changed
			}
			changed = set.hear(w, &r.Record) || changed
		}
		w.resume()
		return changed
	})
	return errors.Join(err, failed)
}

// vouch changes the watermark, and makes what fn says has changed durable before it
// returns. What could not be made durable is taken back, but for a recovery and a
// loss of the right to write, which are the safe side.
func (set *Set) vouch(fn func(w *watermark) (changed bool)) error {
	set.vouching.Lock()
	defer set.vouching.Unlock()
	return set.vouchLocked(fn)
}

// vouchLocked is vouch for a caller that holds vouching.
func (set *Set) vouchLocked(fn func(w *watermark) (changed bool)) error {
	if set.tenure.ended() {
		return dbadapter.ErrClosed
	}
	v := &set.vouching
	before := v.mark.Vouched.clone()
	changed := fn(&v.mark) || v.unsaved
	defer set.shows()
	if !changed {
		return nil
	}
	err := set.ns.update(func(s *State) error {
		*set.vouched(s) = v.mark.Vouched.clone()
		return nil
	})
	v.unsaved = err != nil
	if err != nil {
		before.Recovering, before.Lost = before.Recovering || v.mark.Recovering, before.Lost || v.mark.Lost
		before.Right, before.Heard = v.mark.Right, cmp.Or(v.mark.Heard, before.Heard)
		v.mark.Vouched = before
	}
	return err
}

// shows follows a change of the watermark in what is read without its lock. vouching is held.
func (set *Set) shows() {
	v := &set.vouching
	v.floor.Store(uint64(v.mark.enforced()))
	v.recovers.Store(v.mark.Recovering)
	set.tenure.is(!v.mark.Recovering, v.mark.Lost, set.ns.node.elapsed())
	v.renounces.Store(v.mark.Heard != 0)
}

// relist takes the list of members as it is now. Callers of it hold updating, so that no earlier
// list takes the place of a later one.
func (set *Set) relist(w *watermark) (changed bool) {
	members := set.ns.Members()
	list, active := set.waitedFor(members)
	reading := dbadapter.Timestamp(set.ns.clock.Latest())
	changed = w.relist(list, active, members.alone(set.ns.node.ID), uint64(members.Epoch(set.ns.node.ID)), reading+1)
	if whole, floor := set.tenure.becomesWhole(); whole {
		w.Floor, changed = max(w.Floor, min(floor, reading)), w.whole() || changed
	}
	if set.ns.rule == nil { // what hosts of shards hold other hosts take over
		right := members.Right(set.ns.node.ID)
		if len(set.ns.state.Load().Removed) > 0 {
			right = 0
		}
		changed = w.follow(right, reading) || changed
	}
	return changed
}

// relisted follows a change of the list of members. updating is held.
func (set *Set) relisted() error {
	set.vouching.waiting.again() // records of writers that lost their right
	return set.vouch(set.relist)
}

// hear takes the record of a pledge, which has been examined, if it is about this set.
func (set *Set) hear(w *watermark, r *dbadapter.Record) (changed bool) {
	by, shard := set.ns.about(r.Key)
	p, err := parsePledge(r.Value)
	if err != nil || shard != set.shard {
		return false
	}
	changed = w.hear(by, p, r.Version)
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
	v := &set.vouching
	v.Lock()
	defer v.Unlock()
	collectable := v.waiting.collectable(tau)
	if len(v.heard) == 0 && v.mark.hasOthers() || !v.mark.due(tau, collectable) {
		return nil
	}
	var p *Pledge
	if err := set.vouchLocked(func(w *watermark) bool {
		w.release()
		p = w.pledge(tau, collectable)
		return true
	}); err != nil {
		return err
	}
	value, err := p.encode()
	if err != nil {
		return err
	}
	v.pledged = set.ns.node.Now()
	r, err := set.ns.sayLocked(ctx, set.pledgeKey(), value)
	if err != nil {
		return err
	}
	return set.vouchLocked(func(w *watermark) bool { return set.hear(w, r) })
}

// mayPledge reports whether it is time for another pledge. One under an earlier
// list counts for nothing, so the first under this one does not wait. Nor does one
// by which the others can prove what this node has collected.
func (set *Set) mayPledge() bool {
	set.vouching.Lock()
	defer set.vouching.Unlock()
	if w := &set.vouching.mark; w.under(w.self) == nil || w.untold() {
		return true
	}
	since := set.ns.node.Now().Sub(set.vouching.pledged)
	return since < 0 || since >= pledgeIntervals*set.ns.node.Interval
}

// hold keeps the promise below a clock, durably, for dated records that are about
// to be committed. The least of their clocks is own. commits is held.
func (set *Set) hold(clock, own dbadapter.Timestamp) error {
	at := set.snapshotFromNow()
	set.vouching.Lock()
	defer set.vouching.Unlock()
	return set.holdLocked(clock, own, at)
}

// snapshotFromNow is a reading that only a snapshot from now on greets with. commits is held.
func (set *Set) snapshotFromNow() dbadapter.Timestamp {
	return dbadapter.Timestamp(set.ns.clock.Latest()) + 1
}

// holdLocked is hold for a caller that holds vouching, too. The least clock of
// those records that are this node's own is own, and 0 if none is.
func (set *Set) holdLocked(clock, own, at dbadapter.Timestamp) error {
	return set.vouchLocked(func(w *watermark) bool {
		unproved := own != 0 && w.unprove(own)
		if slices.ContainsFunc(w.Holds, func(h Hold) bool { return h.Clock <= clock && at <= h.At }) {
			return unproved
		}
		w.hold(clock, at+dbadapter.TimestampAt(time.Unix(0, 0).Add(ceilingStep)))
		return true
	})
}

// pledgedUpTo is the greatest promise that this node has made.
func (ns *Namespace) pledgedUpTo() (promise dbadapter.Timestamp) {
	for _, set := range ns.Sets() {
		set.vouching.Lock()
		promise = max(promise, set.vouching.mark.Pledged)
		set.vouching.Unlock()
	}
	if ns.rule != nil { // of shards that were left, too: also of one that has left just now
		promise = max(promise, ns.state.Load().Vouched.Pledged)
	}
	return promise
}

// Floor is up to when this node has collected deletions of the set.
func (set *Set) Floor() dbadapter.Timestamp { return dbadapter.Timestamp(set.vouching.floor.Load()) }

// UpTo is up to when this node takes no record of the set: it has promised to hold all.
func (set *Set) UpTo() dbadapter.Timestamp {
	set.vouching.Lock()
	defer set.vouching.Unlock()
	return set.vouching.mark.upTo()
}
