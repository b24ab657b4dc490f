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
	// Pause is the least time between two syncs with a peer that pushes bring about.
	// Default 500 ms.
	Pause time.Duration
	// Rate is how many bytes of records are pushed in a second, at most, and a
	// quarter of it at once; for what is beyond, a sync is asked for. Default 4 MiB.
	Rate int
}

func (p Pushing) withDefaults() Pushing {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&p.Batch, 5 * time.Millisecond}, {&p.Quiet, time.Second}, {&p.Pause, 500 * time.Millisecond}} {
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

// pushBytes is how many bytes of records share a push, and the most that one record of
// a push takes.
const pushBytes = wire.MaxPush - 1<<10

// fullPushes is how many whole messages wait at most, where the driver takes none.
const fullPushes = 64

// outbox is what a namespace has to push. Its own writes go out as records, a few
// milliseconds after their commit; what is too large, or too much, is only told of.
// The digest of the set goes out when it has been quiet, unless another member has told
// the same one since the last change: the rule of Trickle (RFC 6206) with k = 1.
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

	stirred   bool // the set has changed since its digest was told
	changed   time.Duration
	digestDue time.Duration
}

// push queues what this node has written.
func (ns *Namespace) push(writes []dbadapter.Write, outcomes []dbadapter.Outcome) {
	p := &ns.node.Push
	if !p.On {
		return
	}
	now := ns.node.elapsed()
	o := &ns.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	idle := !o.more && len(o.open) == 0 && len(o.full) == 0
	o.refill(now, p.Rate)
	for i, out := range outcomes {
		if out.Result == dbadapter.Applied && !writes[i].Action.Removes() {
			o.add(&writes[i].Record.Record, now, p)
		}
	}
	if idle && (o.more || len(o.open) > 0 || len(o.full) > 0) {
		ns.pushable()
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
		if !o.more {
			o.more, o.moreDue = true, max(now+p.Batch, o.lastMore+p.Pause)
		}
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

// stir notes that the set has changed.
func (ns *Namespace) stir() {
	p := &ns.node.Push
	if !p.On {
		return
	}
	now := ns.node.elapsed()
	o := &ns.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed = now
	if !o.stirred {
		o.stirred, o.digestDue = true, now+p.Quiet+ns.node.jittered(p.Quiet, ForPush)
		ns.pushable()
	}
}

// retell makes the digest go out, though the set has not changed.
func (ns *Namespace) retell() {
	p := &ns.node.Push
	now := ns.node.elapsed()
	o := &ns.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.stirred {
		o.stirred, o.digestDue = true, now+p.Quiet+ns.node.jittered(p.Quiet, ForPush)
		ns.pushable()
	}
}

// pushable tells the driver to ask Next.
func (ns *Namespace) pushable() {
	if ns.node.Pushable != nil {
		ns.node.Pushable(ns)
	}
}

// NextPush is what is to be pushed now. Otherwise it says how long the driver waits
// before it asks again, unless Config.Pushable tells it before; 0: for good.
func (ns *Namespace) NextPush() (push []byte, wait time.Duration) {
	p := &ns.node.Push
	if !p.On {
		return nil, 0
	}
	now := ns.node.elapsed()
	o := &ns.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if ns.Paused() { // once it is resumed, its digest tells
		o.full, o.open, o.more, o.stirred = nil, nil, false, true
		return nil, 0
	}
	m := wire.PushMessage{Origin: []byte(ns.node.ID), Incarnation: ns.incarnation}
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
		m.Sets = ns.sets()
	default:
		return nil, max(wait, 0)
	}
	if m.Kind != wire.PushDigest {
		o.number++
	}
	m.Number = o.number
	return wire.AppendPush(nil, &m, records), 0
}

// sets are the digests of both of the namespace's sets.
func (ns *Namespace) sets() (s wire.Sets) {
	s.Data, _, _ = ns.Live.State()
	s.Control, _, _ = ns.Control.Live.State()
	return s
}

// told notes that another member holds these sets: if they are this node's, too, there is
// no need to tell it again. It reports whether they are.
func (ns *Namespace) told(ours, theirs wire.Sets) bool {
	if theirs != ours {
		return false
	}
	o := &ns.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stirred = false
	return true
}

// quiet reports whether the sets have not changed for a while.
func (ns *Namespace) quiet(now time.Duration) bool {
	o := &ns.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	return now >= o.changed+ns.node.Push.Quiet/2
}
