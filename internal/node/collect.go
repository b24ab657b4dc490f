package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// Progress is how far the collection of what was deleted, or has expired, is.
type Progress struct {
	// Waiting is an upper bound of the tombstones and records that expire and are
	// held. One that was overwritten still counts until the records are read next.
	// Counted says that they have been, since the namespace was opened or before
	// its last orderly close.
	Waiting int64
	Counted bool
	// Oldest is from when on the first of them may go; zero if nothing waits.
	Oldest time.Time
	// Mark is up to when all members hold what was written; zero: it is not known
	// yet, since the list of members changed.
	Mark time.Time
	// Floor is up to when this node has collected: what is not later and not held
	// here is not let in.
	Floor time.Time
	// Recovering: this node may lack what it held once. It collects nothing until it
	// was found equal with another member.
	Recovering bool
}

// Collection is how far the collection is, and what holds it back.
type Collection struct {
	Progress
	// Holding are the members that hold back what waits.
	Holding []Holding
}

// Holding is a member that holds the collection back.
type Holding struct {
	Member ID
	// Reason says what is missing.
	Reason string
	// Since is up to when its records are known; zero: not since the list of members
	// changed.
	Since time.Time
	// Heard is when a sync with it ended well, in this process; zero: never.
	Heard time.Time
}

// Plus is how far the collection of two sets is: what is true of both. The floor is the
// higher one.
func (c Collection) Plus(of Collection) Collection {
	earlier := func(a, b time.Time) time.Time {
		if a.Before(b) {
			return a
		}
		return b
	}
	c.Waiting, c.Counted, c.Recovering = c.Waiting+of.Waiting, c.Counted && of.Counted, c.Recovering || of.Recovering
	switch {
	case c.Oldest.IsZero():
		c.Oldest = of.Oldest
	case !of.Oldest.IsZero():
		c.Oldest = earlier(c.Oldest, of.Oldest)
	}
	c.Mark = earlier(c.Mark, of.Mark)
	if c.Floor.Before(of.Floor) {
		c.Floor = of.Floor
	}
	c.Holding = slices.Clone(c.Holding)
	for _, h := range of.Holding {
		at, known := slices.BinarySearchFunc(c.Holding, h.Member, func(h Holding, id ID) int { return strings.Compare(string(h.Member), string(id)) })
		if !known {
			c.Holding = slices.Insert(c.Holding, at, h)
			continue
		}
		one := &c.Holding[at]
		if h.Since.Before(one.Since) {
			one.Reason, one.Since = h.Reason, h.Since
		}
		if one.Heard.Before(h.Heard) {
			one.Heard = h.Heard
		}
	}
	return c
}

// Collection says how far the collection is, and what holds it back.
func (set *Set) Collection() Collection {
	set.vouching.Lock()
	defer set.vouching.Unlock()
	w := &set.vouching.mark
	f, swept := set.vouching.waiting.now()
	tau := dbadapter.Timestamp(set.ns.clock.Latest())
	c := Collection{Progress: Progress{Waiting: f.count, Counted: swept, Recovering: w.Recovering}}
	moment := func(t dbadapter.Timestamp) time.Time {
		if t == 0 {
			return time.Time{}
		}
		return t.Time()
	}
	c.Mark, c.Floor = moment(w.mark(tau)), moment(w.Floor)
	if f.count == 0 {
		return c
	}
	c.Oldest = moment(f.least)
	for id, reason := range w.holding(f.least, tau) {
		if id == w.self {
			continue
		}
		c.Holding = append(c.Holding, Holding{id, reason, moment(w.known[id]), set.vouching.heard[id]})
	}
	slices.SortFunc(c.Holding, func(a, b Holding) int { return strings.Compare(string(a.Member), string(b.Member)) })
	return c
}

// holding are the members because of which the mark is below a goal, each with what
// is missing. A member that waits for another one is not named for that.
func (w *watermark) holding(goal, tau dbadapter.Timestamp) map[ID]string {
	why := map[ID]string{}
	if goal > tau || w.mark(tau) >= goal {
		return why
	}
	for _, id := range w.active {
		if id == w.self {
			continue
		}
		if w.known[id] < goal {
			why[id] = "this node has not synced with it since, and has not heard of a member that has"
		}
	}
	for _, id := range w.active {
		s := w.under(id)
		switch {
		case id == w.self || w.promised(id) >= goal || w.known[id] < goal: // what is silent says nothing of others
		case s == nil:
			why[id] = "it has not said what it holds under the list of members as it is now"
		case s.at.Clock < goal:
			why[id] = "it has not said what it holds since"
		default:
			waits := false
			for i, other := range w.active {
				if other != id && s.Vector[i] < goal {
					waits = true
					if other != w.self && why[other] == "" {
						why[other] = "another member has not synced with it since"
					}
				}
			}
			if !waits {
				why[id] = "it has not said that it holds what all members held then"
			}
		}
	}
	w.awaited(goal, why)
	return why
}

// awaited adds the members that this node's own holds wait for.
func (w *watermark) awaited(goal dbadapter.Timestamp, why map[ID]string) {
	for _, h := range w.Holds {
		if h.Clock > goal {
			continue
		}
		for _, id := range w.active {
			if id != w.self && why[id] == "" && !w.coveredBy(id, h) {
				why[id] = "it has not said that it holds what this node imported with a date, or restamped, while its clock said up to " +
					h.At.Time().UTC().Format(time.RFC3339)
			}
		}
	}
}

// Collect takes out what all members are past, without waiting for the background,
// and tells the members what this node holds.
func (set *Set) Collect(ctx context.Context) (Swept, error) {
	if err := set.pledge(ctx); err != nil {
		return Swept{}, err
	}
	return set.sweep(ctx)
}

// tend does what has become due in the collection.
func (set *Set) tend(ctx context.Context) (swept Swept, err error) {
	set.vouching.Lock()
	w := &set.vouching.mark
	back := !w.counts()
	saved := set.vouchLocked((*watermark).recoverAlone)
	set.vouching.Unlock()
	var failed error
	if back && !set.ns.recovers() { // a member returns with all of its sets
		failed = set.ns.Return(ctx) // of no effect unless this node has lapsed
	}
	if set.mayPledge() {
		failed = errors.Join(failed, set.pledge(ctx))
	}
	tau, err := set.tau(ctx)
	if err != nil || tau == 0 {
		return swept, errors.Join(saved, failed, err)
	}
	set.vouching.Lock()
	mark := w.mark(tau)
	set.vouching.Unlock()
	if !set.vouching.waiting.ready(mark) || set.rests(set.vouching.waiting.within(mark)) {
		return swept, errors.Join(saved, failed)
	}
	swept, err = set.sweep(ctx)
	if errors.Is(err, errAnew) {
		err = nil
	}
	if set.mayPledge() {
		failed = errors.Join(failed, set.pledge(ctx))
	}
	return swept, errors.Join(saved, failed, err)
}

// rests reports whether the last sweep was too short a time ago for another one in
// the background. If soon is set, it says so of a sweep that takes out all that
// waits.
func (set *Set) rests(soon bool) bool {
	set.vouching.Lock()
	defer set.vouching.Unlock()
	until, now := set.vouching.rest, set.ns.node.Now()
	if soon {
		until = set.vouching.soon
	}
	return now.Before(until) && until.Sub(now) < sweepRest // else the clock was set back
}

// sweep takes out what all members are past.
func (set *Set) sweep(ctx context.Context) (Swept, error) {
	set.sweeping.Lock()
	defer set.sweeping.Unlock()
	return set.sweepLocked(ctx)
}

func (set *Set) sweepLocked(ctx context.Context) (Swept, error) {
	begun := set.ns.node.Now()
	swept, err := set.sweepOnce(ctx)
	ended := set.ns.node.Now()
	set.vouching.Lock()
	defer set.vouching.Unlock()
	took := ended.Sub(begun)
	set.vouching.rest, set.vouching.soon = ended.Add(min(sweepRest, sweepPause*took)), ended.Add(min(sweepRest, lastPause*took))
	return swept, err
}

// keepUp begins no sync with a peer that has collected what this node still holds
// and could collect, too. All of it would count as a difference, travel to the peer
// and be declined there. This node collects first, and the initiator tries again.
func (c *Conversation) keepUp(ctx context.Context) error {
	set := c.part.set
	if !c.vouches() || c.ask.ListsMayDiffer || !set.behind(c.theirs.Floor) {
		return nil
	}
	c.collect = func() error {
		if !set.sweeping.TryLock() {
			return nil // it is being done
		}
		defer set.sweeping.Unlock()
		if set.rests(true) {
			return nil // it has been done
		}
		if _, err := set.sweepLocked(ctx); !errors.Is(err, errAnew) {
			return err
		}
		return nil
	}
	return fmt.Errorf("%w: this node first collects what the peer has collected already", reconcile.ErrBusy)
}

// behind reports whether a peer's floor shows that it has collected what this node
// holds, and all members are past.
func (set *Set) behind(floor dbadapter.Timestamp) bool {
	if set.rests(true) {
		return false // sweeps for others, too, take a part of the time only
	}
	set.vouching.Lock()
	defer set.vouching.Unlock()
	w := &set.vouching.mark
	return floor != recovers && floor > w.Floor && floor <= w.mark(dbadapter.Timestamp(set.ns.clock.Latest())) && set.vouching.waiting.ready(floor)
}
