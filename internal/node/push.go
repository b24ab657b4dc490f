package node

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Pushing says how what a node writes is pushed to the other members. A zero field takes
// its default.
type Pushing struct {
	// On: the driver carries pushes.
	On bool
	// Batch is how long a write waits for others to share its message. Default 5 ms.
	Batch time.Duration
	// Quiet is for how long a set must not have changed before its digest is told.
	// Default 1 s.
	Quiet time.Duration
	// Busy is after what time from a push a node tells the number of its last one
	// although the set is not quiet. It is drawn from half of Busy to one and a
	// half. So a member that has missed the push hears of it. Default 6 s: a set
	// that is quiet tells its digest before.
	Busy time.Duration
	// Pause is the least time between two syncs with a peer that pushes bring about.
	// Default 500 ms.
	Pause time.Duration
	// Rate is how many bytes of records are pushed in a second, at most, and a
	// quarter of it at once. For what is beyond, a sync is asked for. Default 4
	// MiB.
	Rate int
	// Send, if not 0, is how many bytes all copies of pushes that the node sends take in a
	// second, at most.
	Send int
}

func (p Pushing) withDefaults() Pushing {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&p.Batch, 5 * time.Millisecond}, {&p.Quiet, time.Second}, {&p.Busy, 6 * time.Second}, {&p.Pause, 500 * time.Millisecond}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if p.Rate == 0 {
		p.Rate = PushRate
	}
	return p
}

// PushRate is the default of Pushing.Rate.
const PushRate = 4 << 20

// MeshCopies is how many copies of a push its origin sends at most where others
// pass it on. The driver's mesh has no more peers.
const MeshCopies = 4

// rate is how many bytes of records are pushed in a second.
func (set *Set) rate() int {
	p := &set.ns.node.Push
	if p.Send == 0 {
		return p.Rate
	}
	copies := set.others()
	if copies >= wire.MaxDirect {
		copies = MeshCopies
	}
	return min(p.Rate, p.Send/max(copies, 1))
}

// pushBytes is how many bytes of records share a push, and the most that one record of
// a push takes.
const pushBytes = wire.MaxPush - 1<<10

// fullPushes is how many whole messages wait at most, where the driver takes none.
const fullPushes = 64

// outbox is what a set has to push. Its own writes go out as records, a few
// milliseconds after their commit. What is too large, or too much, is only
// reported. The digest of the set goes out when it has been quiet, unless another
// member has sent the same one since the last change. That is the rule of Trickle
// (RFC 6206) with k = 1. Where others write all the time, it goes out some seconds
// after a push, for the last one's number.
//
// Times are those of Config.Elapsed.
type outbox struct {
	mu     sync.Mutex // guards what follows
	number uint64     // of the last push

	full [][]byte // records of whole messages
	open []byte   // records of the next one, which goes out when it is due
	due  time.Duration

	room   int           // bytes that may be added now
	filled time.Duration // when room was reckoned
	flood  bool          // room ran out, and has not filled up since

	more     bool // a sync is to be asked for, when moreDue has come
	moreDue  time.Duration
	lastMore time.Duration

	met bool // a sync of everything has ended since the opening

	stirred   bool // the set has changed since its digest was told
	changed   time.Duration
	digestDue time.Duration

	untold    bool // there were pushes since a digest told their number
	numberDue time.Duration
}

// push queues what this node has written.
func (set *Set) push(writes []dbadapter.Write, outcomes []dbadapter.Outcome) {
	p := &set.ns.node.Push
	if !p.On {
		return
	}
	now, rate := set.ns.node.elapsed(), set.rate()
	o := &set.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	idle := !o.more && len(o.open) == 0 && len(o.full) == 0
	o.refill(now, rate)
	for i, out := range outcomes {
		if out.Result == dbadapter.Applied && !writes[i].Action.Removes() {
			o.add(&writes[i].Record.Record, now, p)
		}
	}
	if idle && (o.more || len(o.open) > 0 || len(o.full) > 0) {
		set.pushable()
	}
}

// refill reckons how many bytes may be added. mu is held, as in those that follow.
func (o *outbox) refill(now time.Duration, rate int) {
	most := rate / 4
	if o.filled == 0 && o.room == 0 {
		o.room = most
	}
	o.room = min(most, o.room+int((now-o.filled).Seconds()*float64(rate)))
	o.filled = now
	if o.room == most {
		o.flood = false
	}
}

// add queues a record, or that there is more.
func (o *outbox) add(r *dbadapter.Record, now time.Duration, p *Pushing) {
	before := len(o.open)
	// A signature, a version and lengths take less than 256 bytes.
	if size := len(r.Key) + len(r.Value) + 8*len(r.Replaces) + 256; o.flood || size > pushBytes || size > o.room || len(o.full) >= fullPushes {
		o.flood = o.flood || size <= pushBytes
		o.tellMore(now, p)
		return
	}
	if before == 0 {
		o.due = now + p.Batch
	}
	o.open = wire.AppendPushed(o.open, r)
	o.room -= len(o.open) - before
	if len(o.open) > pushBytes {
		o.full = append(o.full, o.open[:before:before])
		o.open = append([]byte(nil), o.open[before:]...)
	}
}

// tellMore makes the others hear that a sync brings more.
func (o *outbox) tellMore(now time.Duration, p *Pushing) {
	if !o.more {
		o.more, o.moreDue = true, max(now+p.Batch, o.lastMore+p.Pause)
	}
}

// tellMore tells the others of what this node has written and does not push.
func (set *Set) tellMore() {
	p := &set.ns.node.Push
	if !p.On {
		return
	}
	o := &set.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tellMore(set.ns.node.elapsed(), p)
	set.pushable()
}

// met notes that a sync of everything has ended. What the first one since the opening has
// sent to its peer was written before, and perhaps not pushed: the others are told.
func (set *Set) met(sent int) {
	o := &set.outbox
	o.mu.Lock()
	first := !o.met
	o.met = true
	o.mu.Unlock()
	if first && sent > 0 {
		set.tellMore()
	}
}

// stir notes that the set has changed.
func (set *Set) stir() {
	p := &set.ns.node.Push
	if !p.On {
		return
	}
	now := set.ns.node.elapsed()
	o := &set.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed = now
	if !o.stirred {
		o.stirred, o.digestDue = true, now+p.Quiet+set.ns.node.jittered(p.Quiet, ForPush)
		set.pushable()
	}
}

// retell makes the digest go out, though the set has not changed.
func (set *Set) retell() {
	p := &set.ns.node.Push
	now := set.ns.node.elapsed()
	o := &set.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.stirred {
		o.stirred, o.digestDue = true, now+p.Quiet+set.ns.node.jittered(p.Quiet, ForPush)
		set.pushable()
	}
}

// Queued is how many bytes of records wait to be made into pushes.
func (set *Set) Queued() (n int) {
	o := &set.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, records := range o.full {
		n += len(records)
	}
	return n + len(o.open)
}

// pushable tells the driver to ask Next.
func (set *Set) pushable() {
	if set.ns.node.Pushable != nil {
		set.ns.node.Pushable(set)
	}
}

// Push is what a set has to push.
type Push struct {
	message wire.PushMessage // but for its records
	records []byte
}

// Bytes is the push as other members may pass it on.
func (p *Push) Bytes() []byte { return wire.AppendPush(nil, &p.message, p.records) }

// Direct is the push as it goes directly from its origin to a member: without the origin.
func (p *Push) Direct() []byte {
	m := p.message
	m.Origin = nil
	return wire.AppendPush(nil, &m, p.records)
}

// More is the push without what it brings: it says that a sync brings that.
func (p *Push) More() *Push {
	m := p.message
	m.Kind, m.Sets = wire.PushMore, wire.Sets{}
	return &Push{message: m}
}

// NextPush is what is to be pushed now. Otherwise it says how long the driver waits
// before it asks again, unless Config.Pushable tells it before; 0: for good.
func (set *Set) NextPush() (push *Push, wait time.Duration) {
	p := &set.ns.node.Push
	if !p.On {
		return nil, 0
	}
	now := set.ns.node.elapsed()
	o := &set.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if set.ns.Paused() { // once it is resumed, its digest tells
		o.full, o.open, o.more, o.stirred = nil, nil, false, true
		return nil, 0
	}
	m := set.message()
	wait = -1
	ready := func(due time.Duration) bool {
		if now >= due {
			return true
		}
		if wait < 0 || due-now < wait {
			wait = due - now
		}
		return false
	}
	var records []byte
	switch {
	case len(o.full) > 0:
		records, o.full = o.full[0], o.full[1:]
	case len(o.open) > 0 && ready(o.due):
		records, o.open = o.open, nil
	case o.more && ready(o.moreDue):
		o.more, o.lastMore, m.Kind = false, now, wire.PushMore
	case o.stirred && ready(max(o.digestDue, o.changed+p.Quiet)):
		o.stirred, m.Kind = false, wire.PushDigest
	case o.untold && ready(o.numberDue): // and the set is not quiet: stirred stays
		m.Kind = wire.PushDigest
	default:
		return nil, max(wait, 0)
	}
	if m.Kind == wire.PushDigest {
		m.Sets, o.untold = set.digests(), false
	} else {
		if o.number++; !o.untold {
			o.untold, o.numberDue = true, now+set.ns.node.jittered(p.Busy, ForPush)
		}
	}
	m.Number = o.number
	return &Push{m, records}, 0
}

// message is a push of this node's, but for what it brings.
func (set *Set) message() wire.PushMessage {
	return wire.PushMessage{Origin: []byte(set.ns.node.ID), Incarnation: set.ns.incarnation}
}

// Standing is what a member is sent that begins to take pushes directly. It is the
// digest, with the number of the last push, which shows the member whether it lacks
// any.
func (set *Set) Standing() *Push {
	m := set.message()
	m.Kind, m.Sets = wire.PushDigest, set.digests()
	o := &set.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	m.Number = o.number
	return &Push{message: m}
}

// digests are those of the set and of the control namespace.
func (set *Set) digests() (s wire.Sets) {
	s.Data, _, _ = set.Live.State()
	s.Control, _, _ = set.ns.Control.Live.State()
	return s
}

// told notes that another member holds these sets: if they are this node's, too, there is
// no need to tell it again. It reports whether they are.
func (set *Set) told(ours, theirs wire.Sets) bool {
	if theirs != ours {
		return false
	}
	now := set.ns.node.elapsed()
	o := &set.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stirred = false
	o.untold = o.untold && (set.deaf.Load() || now < o.changed+set.ns.node.Push.Quiet/2) // others compare digests of quiet sets only
	return true
}

// quiet reports whether the sets have not changed for a while.
func (set *Set) quiet(now time.Duration) bool {
	o := &set.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	return now >= o.changed+set.ns.node.Push.Quiet/2
}
