package syncing

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
)

// Bulk is from when on a sync is a large one. A zero field takes its default.
type Bulk struct {
	// PartsFrom is from how many differences on a sync goes in parts, and PartSize how
	// many a part has, about. Defaults: those of package reconcile.
	PartsFrom, PartSize int64
	// Turn is from how many records on a conversation needs the turn of its peer.
	// Default: 256, so that fewer may come from several peers.
	Turn int
}

// WithDefaults is b with its defaults.
func (b Bulk) WithDefaults() Bulk {
	b.PartsFrom = cmp.Or(b.PartsFrom, reconcile.PartsFrom)
	b.PartSize = cmp.Or(b.PartSize, reconcile.PartSize)
	b.Turn = cmp.Or(b.Turn, turnFrom)
	return b
}

// BulkTurn decides from which peer a set is given many records. That is one peer at a
// time, in one conversation, or in parts of one sync. So a node that was away is
// sent each value once. The others are told to wait, and then find that little is
// left.
//
// A number of records that a peer announces costs it nothing. So a turn lasts while
// it makes headway. A peer that gives less than TurnFor allows loses it to the next
// one that asks, and is then behind all others that ask.
type BulkTurn struct {
	mu      sync.Mutex // guards what follows
	holder  roster.ID  // of this turn, or, where open is not set, of the last one
	open    bool
	term    int           // counts turns: who was given an earlier one has lost it
	running int           // its conversations that are given many records
	wholes  int           // those of them that are no part of a large sync: 0 or 1, which then runs alone
	rest    time.Duration // until when the holder may go on, after the last of these
	// since is when the turn began, or made headway last; records and bytes is what
	// was applied since then. If gave is set, it has made headway, or is not to be
	// ranked.
	since   time.Duration
	records int
	bytes   int64
	gave    bool
	// putOff are peers that would have given many records out of turn. What was found
	// with them may have cost cells, and is not looked for again before the turn is
	// free.
	putOff map[roster.ID]refusal
	// lost ranks the peers whose last turn ended without headway, the last one highest.
	lost   map[roster.ID]int
	losses int
	// ends counts the conversations in which many records came, ended those of each peer.
	ends  int
	ended map[roster.ID]int
}

// refusal is one of many records. If sure is set, it is for their number.
// Otherwise it is for an estimate of it, which does not say which side they would
// go to.
type refusal struct {
	was, sure bool
	at        time.Duration
	asked     time.Duration // when the peer was put off last, for this or another reason
}

// holds reports whether the same is refused still. What was only expected is looked at
// once a minute: a node that is being given much for long gives to others meanwhile.
func (r refusal) holds(now time.Duration) bool {
	return r.sure || r.was && now-r.at < TurnDoubt
}

// TurnError is reconcile.ErrTurn that says whose turn it is.
type TurnError struct {
	Holder roster.ID
	In     time.Duration // after which the turn may be free; it may be prolonged
}

func (e *TurnError) Error() string {
	return fmt.Sprintf("busy with %s; try again in %d s", e.Holder, max(1, int(math.Ceil(e.In.Seconds()))))
}

// Unwrap makes a TurnError an ErrTurn.
func (e *TurnError) Unwrap() error { return reconcile.ErrTurn }

// count is how many conversations have brought many records. A sync that began
// before one of them ended would be given the same again. A part is given what no
// other part is, so that those with the same peer do not count for it. mu is held.
func (t *BulkTurn) count(remote roster.ID, part bool) int {
	if part {
		return t.ends - t.ended[remote]
	}
	return t.ends
}

// free reports whether a peer may give many records now, in a part of a large sync or
// not. mu is held.
func (t *BulkTurn) free(remote roster.ID, part bool, now time.Duration) bool {
	switch {
	case t.running > 0 && t.holder == remote:
		return part && t.wholes == 0
	case t.held(now) && t.holder == remote:
		return true
	case t.held(now) && now-t.since < TurnFor:
		return false
	}
	return t.first(remote, now) == remote
}

// held reports whether the turn is a peer's: it is given records, or was a moment ago. mu is held.
func (t *BulkTurn) held(now time.Duration) bool { return t.running > 0 || t.open && now < t.rest }

// first is the peer itself, or of those that have asked a moment ago the one that comes
// before it. mu is held.
func (t *BulkTurn) first(remote roster.ID, now time.Duration) roster.ID {
	first := remote
	for id, r := range t.putOff {
		if now-r.asked < turnAsked && cmp.Or(cmp.Compare(t.lost[id], t.lost[first]), cmp.Compare(id, first)) < 0 && t.lost[id] < t.lost[remote] {
			first = id
		}
	}
	return first
}

// refuse notes that a peer was put off, and says why. mu is held.
func (t *BulkTurn) refuse(remote roster.ID, last refusal, now time.Duration) error {
	if t.putOff == nil {
		t.putOff = map[roster.ID]refusal{}
	}
	last.asked = now
	t.putOff[remote] = last
	switch first := t.first(remote, now); {
	case t.running > 0:
		return &TurnError{t.holder, t.since + TurnFor - now}
	case t.held(now) || first == remote:
		return &TurnError{t.holder, t.rest - now}
	default:
		return &TurnError{first, turnPause}
	}
}

// over ends a turn. mu is held.
func (t *BulkTurn) over(stalled bool) {
	if t.open && (stalled || !t.gave) {
		if t.lost == nil {
			t.lost = map[roster.ID]int{}
		}
		t.losses++
		t.lost[t.holder] = t.losses
	}
	t.open, t.running, t.wholes, t.rest = false, 0, 0, 0
	t.term++
}

// Claim is what one conversation has of the turn of its set: the right to be given many
// records, until another peer takes the turn. A conversation that needs none has
// the zero value, which may only End.
type Claim struct {
	turn   *BulkTurn
	remote roster.ID
	part   bool // of a large sync
	from   int  // from how many records on it needs the turn
	clock  func() time.Duration

	// What follows is guarded by the lock of the turn.

	seen int // what turn.count was when Look was called
	// granted: it was given the turn, in the term of that number.
	granted bool
	term    int
	// many: it is given many records, and not only expected to be.
	many bool
	// doubted: it goes on without the turn, once in a while, since only an estimate says that
	// much may come.
	doubted bool
}

// Claim is that of a conversation, which needs the turn for so many records or more.
func (t *BulkTurn) Claim(remote roster.ID, part bool, from int, clock func() time.Duration) *Claim {
	return &Claim{turn: t, remote: remote, part: part, from: from, clock: clock}
}

// Look is called before the conversation opens its replica: what others have brought by then is
// in it.
func (c *Claim) Look() {
	c.turn.mu.Lock()
	defer c.turn.mu.Unlock()
	c.seen = c.turn.count(c.remote, c.part)
}

// Open puts a conversation off that is a part of a large sync, or had to be put off before, out
// of turn. That is before anything is opened: rather now than after a scan. An empty node takes
// the turn, since its peer sends all that it holds without being asked.
func (c *Claim) Open(empty bool) error {
	t := c.turn
	t.mu.Lock()
	defer t.mu.Unlock()
	now, last := c.clock(), t.putOff[c.remote]
	switch {
	case t.free(c.remote, c.part, now):
		if last.was { // it keeps its place, for as long as it may take to ask for the turn
			t.putOff[c.remote] = refusal{asked: now}
		}
	case c.part || last.holds(now):
		return t.refuse(c.remote, last, now)
	}
	if empty {
		return c.take(true)
	}
	return nil
}

// Expect takes the turn, before cells travel, if many records may come. A part of a
// large sync is not asked, since it begins only while its peer may give it records.
// Of two nodes that sync in parts, the one that gives would otherwise have its turn
// taken by each that it gives to.
func (c *Claim) Expect(records int) error {
	if records < c.from || c.part {
		return nil
	}
	c.turn.mu.Lock()
	defer c.turn.mu.Unlock()
	return c.take(false)
}

// Await takes the turn if many records are about to come, and gives back one that was
// taken for more than there are.
func (c *Claim) Await(records int, all bool) error {
	c.turn.mu.Lock()
	defer c.turn.mu.Unlock()
	if records >= c.from {
		return c.take(true)
	}
	if all && !c.many && c.granted {
		c.granted = false
		c.done(false)
	}
	return nil
}

// take takes the turn. It fails with ErrTurn while another conversation has it. It also
// fails if one has had it since Look. Parts of one sync share the turn. Unless it is sure that
// many records come, the conversation may go on without it: the cells tell. mu is held.
func (c *Claim) take(sure bool) error {
	t, now := c.turn, c.clock()
	if c.granted && sure && !c.many && c.term == t.term {
		t.since = now // what comes is known, and the cells have taken their time
	}
	c.many = c.many || sure
	switch {
	case c.granted || c.doubted && !sure:
		return nil
	case c.mayBegin(now):
		c.begin(now)
		return nil
	}
	last := t.putOff[c.remote]
	if last.was && !sure && last.holds(now) {
		return t.refuse(c.remote, last, now)
	}
	err := t.refuse(c.remote, refusal{was: true, sure: sure, at: now}, now)
	if c.doubted = last.was && !sure; c.doubted {
		return nil
	}
	return err
}

// mayBegin reports whether the turn is free for the conversation, and what it would be given no
// other one has brought since Look. mu is held.
func (c *Claim) mayBegin(now time.Duration) bool {
	return c.turn.free(c.remote, c.part, now) && c.seen == c.turn.count(c.remote, c.part)
}

// begin lets the conversation join a turn of its peer, or begins one. mu is held.
func (c *Claim) begin(now time.Duration) {
	t := c.turn
	delete(t.putOff, c.remote)
	if !t.held(now) || t.holder != c.remote {
		t.over(t.held(now))
		t.holder, t.open, t.since, t.records, t.bytes, t.gave = c.remote, true, now, 0, 0, false
	}
	c.granted, c.term = true, t.term
	t.running++
	if !c.part {
		t.wholes++
	}
}

// Applied notes that records were applied: from, or turnBytes, of them are headway. It takes back
// a turn that was lost to another peer, which is over, or says why it cannot.
func (c *Claim) Applied(records int, bytes int64) error {
	t := c.turn
	t.mu.Lock()
	defer t.mu.Unlock()
	now := c.clock()
	switch {
	case !c.granted:
	case c.term == t.term:
		t.records, t.bytes = t.records+records, t.bytes+bytes
		if t.records >= c.from || t.bytes >= turnBytes {
			t.since, t.records, t.bytes, t.gave = now, 0, 0, true
			delete(t.lost, c.remote)
		}
	case c.mayBegin(now):
		c.begin(now)
	default:
		return t.refuse(c.remote, refusal{was: true, sure: true, at: now}, now)
	}
	return nil
}

// End gives the turn back. called: this node's own call has ended, well or not. If it ended well,
// the peer has given all that it has. Such a peer is not ranked behind others for having little,
// nor for a short turn. It does not decide how often it is called. Of twenty empty nodes each
// would wait for another else. With rests the peer keeps the turn for a moment.
func (c *Claim) End(called, well, rests bool) {
	t := c.turn
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.granted {
		return
	}
	if called && c.term == t.term {
		if well {
			delete(t.lost, c.remote)
		}
		t.gave = t.gave || well || c.clock()-t.since < TurnRest
	}
	c.done(rests)
}

// done gives the turn back: once. With rests the peer keeps the turn for a moment after that. mu
// is held.
func (c *Claim) done(rests bool) {
	t := c.turn
	if c.term != t.term {
		return
	}
	if c.many {
		if t.ended == nil {
			t.ended = map[roster.ID]int{}
		}
		t.ends++
		t.ended[c.remote]++
	}
	if !c.part {
		t.wholes--
	}
	if t.running--; t.running > 0 {
		return
	}
	if t.rest = c.clock() + TurnRest; !rests {
		t.over(false)
	}
}
