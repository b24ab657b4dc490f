package node

import (
	"math"
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// turn decides from which peer a set is given many records: from one at a time,
// and in one conversation, or in parts of one sync, so that a node that was away is sent
// each value once. The others are told to wait, and then find that little is left.
type turn struct {
	mu      sync.Mutex // guards what follows
	holder  ID
	running int       // its conversations that are given many records
	wholes  int       // those of them that are no part of a large sync: 0 or 1, which then runs alone
	rest    time.Time // until when the holder may go on, after the last of these
	// told are peers that would have given many records out of turn: what was found
	// with them may have cost cells, and is not looked for again before the turn is free.
	told map[ID]refused
	// ends counts the conversations in which many records came, ended those of each peer.
	ends  int
	ended map[ID]int
}

// refused is a refusal of many records: for their number, or, not sure, for an estimate of
// it, which does not say which side they would come to.
type refused struct {
	sure bool
	at   time.Time
}

// lasts reports whether the same is refused still. What was only expected is looked at
// once a minute: a node that is being given much for long gives to others meanwhile.
func (r refused) lasts(now time.Time) bool {
	return r.sure || now.Sub(r.at).Abs() < turnDoubt
}

// since is how many conversations have brought many records: a sync that began before one
// of them ended would be given the same again. A part is given what no other part is, so
// that those with the same peer do not count for it.
func (t *turn) since(remote ID, part bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count(remote, part)
}

// count is since. mu is held.
func (t *turn) count(remote ID, part bool) int {
	if part {
		return t.ends - t.ended[remote]
	}
	return t.ends
}

// waits reports whether a sync with a peer is put off, that is expected to be a large
// one, or was.
func (t *turn) waits(remote ID, part, large bool, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free(remote, part, now) {
		delete(t.told, remote)
		return false
	}
	told, was := t.told[remote]
	return large || was && told.lasts(now)
}

// free reports whether a peer may give many records now, in a part of a large sync or
// not. mu is held.
func (t *turn) free(remote ID, part bool, now time.Time) bool {
	if t.running > 0 {
		return t.holder == remote && part && t.wholes == 0
	}
	// A clock that was set back must not prolong the rest.
	resting := now.Before(t.rest) && t.rest.Sub(now) <= turnRest
	return t.holder == remote || !resting
}

// take takes the turn for a conversation with a peer, until done is called: once, with
// whether many records came, or could have. With rests the peer keeps the turn for a
// moment after that. It fails with ErrTurn while another conversation has it, and if one
// has had it since this one has looked at what this node holds; parts of one sync share
// it. Unless it is sure that many records come, done may be nil: the cells tell.
func (t *turn) take(remote ID, part bool, since int, sure bool, clock func() time.Time) (done func(many, rests bool), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.free(remote, part, clock()) || since != t.count(remote, part) {
		if t.told == nil {
			t.told = map[ID]refused{}
		}
		told, was := t.told[remote]
		if was && !sure && told.lasts(clock()) {
			return nil, reconcile.ErrTurn
		}
		t.told[remote] = refused{sure, clock()}
		if was && !sure {
			return nil, nil
		}
		return nil, reconcile.ErrTurn
	}
	delete(t.told, remote)
	t.holder = remote
	t.running++
	if !part {
		t.wholes++
	}
	return func(many, rests bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.ended == nil {
			t.ended = map[ID]int{}
		}
		if many {
			t.ends++
			t.ended[remote]++
		}
		if !part {
			t.wholes--
		}
		if t.running--; t.running == 0 && rests {
			t.rest = clock().Add(turnRest)
		}
	}, nil
}

// large reports whether many records are expected to come: the sync is a part of a large
// one, or this node is being filled.
func (c *Conversation) large() bool {
	return c.ask.part() || c.ask.whole() && *c.part.set.filledTo(c.part.ns.Members().state) != nil
}

// takeTurn sees to it that this node is given many records by one peer at a time, before
// anything is opened: rather now than after a scan. An empty node takes the turn, since
// its peer sends all that it holds without being asked.
func (c *Conversation) takeTurn() error {
	if c.ask.Control {
		return nil
	}
	set := c.part.set
	c.since = set.turn.since(c.remote, c.ask.part())
	switch {
	case c.ask.DryRun || !c.gets():
		return nil
	case set.turn.waits(c.remote, c.ask.part(), c.large(), set.ns.node.Now()):
		return reconcile.ErrTurn
	}
	if _, records, _ := set.Live.State(); c.ask.whole() && records == 0 {
		return c.await(math.MaxInt, false)
	}
	return nil
}

// expect takes the turn, before cells travel, if many records may come. A part of a large
// sync is not asked: it begins only while its peer may give it records, and of two nodes
// that sync in parts the one that gives would have its turn taken by each that it gives to.
func (c *Conversation) expect(records int) error {
	if records < c.part.ns.node.bulk().Turn || c.ask.part() {
		return nil
	}
	return c.take(false)
}

// await takes the turn if many records are about to come, and gives back one that was
// taken for more than there are.
func (c *Conversation) await(records int, all bool) error {
	if records >= c.part.ns.node.bulk().Turn {
		c.many = true
		return c.take(true)
	}
	if all && !c.many && c.give != nil {
		c.give(false, false)
		c.give = nil
	}
	return nil
}

func (c *Conversation) take(sure bool) error {
	if c.give != nil || c.doubted && !sure {
		return nil
	}
	give, err := c.part.set.turn.take(c.remote, c.ask.part(), c.since, sure, c.part.ns.node.Now)
	c.give, c.doubted = give, err == nil && give == nil
	return err
}
