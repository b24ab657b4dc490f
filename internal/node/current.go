package node

import (
	"slices"
	"sync"
	"time"
)

// Whether a host is sure of what it holds. One that is settled may lack what another one has
// acknowledged since the two were found equal: it was down, or they are apart. So it is *current*
// only while each other member that may hold the shard has been found equal with it, within
// CurrentFor, in a sync that it began itself: its peer's snapshot is later than the moment that
// counts. A host of an earlier layout is one of them until it says that it does not hold the shard:
// it may have taken a write without having said yet that it does (without). What it says then is not older than what any of them had acknowledged CurrentFor
// before. A sync that others begin tells nothing of when their snapshot was taken.
//
// A set that is asked has such syncs made, as pushes do (hastening); one that is not asked
// lets it lapse, and costs nothing. After a start, nothing counts from before.

// CurrentFor is how long a host is sure after it began to be found equal with another one.
const CurrentFor = 5 * time.Second

// renewAfter is from what time on a set that is asked is synced again, so that it stays
// current: a hastened sync begins within a second.
const renewAfter = CurrentFor * 2 / 5

// Renewals are bounded for a node as a whole: with thousands of shards that are all read they would
// be thousands of syncs a second. A set that gets none is not current, and its askers ask each holder.
const (
	// maxRenewals is how many there are a second. A sync of equal sets takes some milliseconds of
	// a processor on both sides together, so that they take no more than a part of one; 150 pairs
	// of a shard and another holder stay current all the time.
	maxRenewals = 64
	// renewalsAtOnce is how many there may be at once, after a time without any.
	renewalsAtOnce = maxRenewals
)

// renewals holds a node's renewals to maxRenewals.
type renewals struct {
	mu   sync.Mutex
	next time.Duration // when the next one would be, if they came evenly
}

// take reports whether there may be one more.
func (r *renewals) take(now time.Duration) bool {
	const each = time.Second / maxRenewals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next > now+(renewalsAtOnce-1)*each {
		return false
	}
	r.next = max(r.next, now) + each
	return true
}

// current is with which other holders a set was found equal since it was opened.
type current struct {
	mu  sync.Mutex // guards what follows
	met bool       // with one, at least, that is a host or has said that it holds the set
	// at is when the last such sync began that this node began, of each.
	at     map[ID]moment
	beside beside
}

// beside are the other members that may hold a set, as of what it was made of.
type beside struct {
	members *Members
	placed  *placed
	heldBy  *map[ID]shardsHeld
	without *without
	holders []ID // of Holders
	all     []ID // and of unheard
}

// moment is a time by two clocks: one that setting a clock does not move, and one that goes on
// while the machine sleeps.
type moment struct {
	elapsed time.Duration
	wall    time.Time
}

func (n *Node) moment() moment { return moment{n.elapsed(), n.Now().Round(0)} }

// within reports whether no more than d has passed since, by either clock.
func (m moment) within(d time.Duration, now moment) bool {
	return now.elapsed-m.elapsed <= d && now.wall.Sub(m.wall).Abs() <= d
}

// equal notes a sync of everything under one list that has proved this node and a peer equal.
// began is when it began, if this node began it; else nil.
func (c *current) equal(set *Set, peer ID, began *moment) {
	holder := set.With(peer)
	set.hastening.together(peer)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met = c.met || holder
	if began == nil {
		return
	}
	if c.at == nil {
		c.at = map[ID]moment{}
	}
	if was, ok := c.at[peer]; !ok || was.elapsed <= began.elapsed {
		c.at[peer] = *began
	}
}

// of finds the other members that may hold the set: its hosts, those that say that they hold
// it, and those that may without having said so. mu is held.
func (b *beside) of(set *Set) *beside {
	ns := set.ns
	now := beside{members: ns.Members(), placed: ns.placed.Load(), heldBy: ns.heldBy.Load(), without: ns.without.Load()}
	if b.members != now.members || b.placed != now.placed || b.heldBy != now.heldBy || b.without != now.without {
		now.holders = ns.Holders(set.shard)
		now.all = slices.Concat(now.holders, set.unheard(now.holders))
		*b = now
	}
	return b
}

// Current reports whether the set is sure of what it holds, and of what it does not, as of
// CurrentFor ago. Where it soon will not be so, or is not, it has syncs made.
func (set *Set) Current() bool {
	if set.ns.rule == nil || !set.settled() {
		return set.settled()
	}
	now := set.ns.node.moment()
	is := true
	var due []ID
	c := &set.current
	c.mu.Lock()
	beside := c.beside.of(set)
	for i, id := range beside.all {
		at, known := c.at[id]
		is = is && known && at.within(CurrentFor, now)
		if i < len(beside.holders) && (!known || !at.within(renewAfter, now)) {
			due = append(due, id)
		}
	}
	c.mu.Unlock()
	if set.ns.node.Push.On {
		for _, id := range due {
			set.hastening.renew(set, id)
		}
	}
	return is
}

// Proved reports whether the set is settled, and was found equal with another member that may
// hold it since it was opened; where there is no other, it is.
func (set *Set) Proved() bool {
	if set.ns.rule == nil || !set.settled() {
		return set.settled()
	}
	c := &set.current
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.met || len(c.beside.of(set).holders) == 0
}

// Prove is Proved, and has syncs made where the set is settled and not proved.
func (set *Set) Prove() bool {
	is := set.Proved()
	if !is {
		set.Current()
	}
	return is
}

// renew has a sync made with a member that may hold what this node does not, if the node has one
// left.
func (h *hastening) renew(set *Set, with ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, running := h.running[with]; running {
		return
	}
	now := set.ns.node.elapsed()
	if w := h.wants[with]; w != nil && (w.renew || w.apart > 0 && now < w.rests) || !set.ns.node.renewals.take(now) {
		return
	}
	h.want(set, with, with, now, func(w *want) { w.renew = true })
}

// together notes that a member was found equal, so that renewals with it rest no more.
func (h *hastening) together(with ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.wants[with]; w != nil {
		w.apart = 0
	}
}
