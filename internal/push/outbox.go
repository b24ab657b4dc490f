package push

import (
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// pushBytes is how many bytes of records share a push, and the most that one record of
// a push takes.
const pushBytes = wire.MaxPush - 1<<10

// fullPushes is how many whole messages wait at most, where the driver takes none.
const fullPushes = 64

// outbox is what a set has to push. The digest of the set goes out when it has been
// quiet. Where others write all the time, it goes out some seconds after a push, for the
// last one's number.
//
// Times are those of Source.Now.
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

	stirred   bool // the set has changed since its digest was sent
	changed   time.Duration
	digestDue time.Duration

	unnumbered bool // there were pushes since a digest with their number was sent
	numberDue  time.Duration
}

// Written queues what this node has written.
func (p *Pusher) Written(writes []dbadapter.Write, outcomes []dbadapter.Outcome) {
	if !p.set.Config.On {
		return
	}
	now, rate := p.set.Now(), p.rate()
	o := &p.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	idle := !o.more && len(o.open) == 0 && len(o.full) == 0
	o.refill(now, rate)
	for i, out := range outcomes {
		if out.Result == dbadapter.Applied && !writes[i].Action.Removes() {
			o.add(&writes[i].Record.Record, now)
		}
	}
	if idle && (o.more || len(o.open) > 0 || len(o.full) > 0) {
		p.set.Wake()
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
func (o *outbox) add(r *dbadapter.Record, now time.Duration) {
	before := len(o.open)
	// A signature, a version and lengths take less than 256 bytes.
	if size := len(r.Key) + len(r.Value) + 8*len(r.Replaces) + 256; o.flood || size > pushBytes || size > o.room || len(o.full) >= fullPushes {
		o.flood = o.flood || size <= pushBytes
		o.askSync(now)
		return
	}
	if before == 0 {
		o.due = now + Batch
	}
	o.open = wire.AppendPushed(o.open, r)
	o.room -= len(o.open) - before
	if len(o.open) > pushBytes {
		o.full = append(o.full, o.open[:before:before])
		o.open = append([]byte(nil), o.open[before:]...)
	}
}

// askSync makes the others learn that a sync brings more.
func (o *outbox) askSync(now time.Duration) {
	if !o.more {
		o.more, o.moreDue = true, max(now+Batch, o.lastMore+Pause)
	}
}

// AskSync asks the others for a sync: this node has written what it does not push.
func (p *Pusher) AskSync() {
	if !p.set.Config.On {
		return
	}
	o := &p.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.askSync(p.set.Now())
	p.set.Wake()
}

// Met notes that a sync of everything has ended. What the first one since the opening has
// sent to its peer was written before, and perhaps not pushed: the others are asked for a
// sync.
func (p *Pusher) Met(sent int) {
	o := &p.outbox
	o.mu.Lock()
	first := !o.met
	o.met = true
	o.mu.Unlock()
	if first && sent > 0 {
		p.AskSync()
	}
}

// Changed notes that the set has changed.
func (p *Pusher) Changed() {
	if !p.set.Config.On {
		return
	}
	now := p.set.Now()
	o := &p.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed = now
	p.stir(now)
}

// stir makes the digest go out. mu is held.
func (p *Pusher) stir(now time.Duration) {
	if o := &p.outbox; !o.stirred {
		o.stirred, o.digestDue = true, now+Quiet+p.set.Jitter(Quiet)
		p.set.Wake()
	}
}

// Queued is how many bytes of records wait to be made into pushes.
func (p *Pusher) Queued() (n int) {
	o := &p.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, records := range o.full {
		n += len(records)
	}
	return n + len(o.open)
}

// Push is one message of a set to the other members.
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

// More is the push without what it brings. It says that a sync brings that.
func (p *Push) More() *Push {
	m := p.message
	m.Kind, m.Sets = wire.PushMore, wire.Sets{}
	return &Push{message: m}
}

// Next is what is to be pushed now. Otherwise it says how long to wait before it is asked
// again, unless Source.Wake is called before; 0: for good.
func (p *Pusher) Next() (push *Push, wait time.Duration) {
	if !p.set.Config.On {
		return nil, 0
	}
	now := p.set.Now()
	o := &p.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.set.Paused() { // once it is resumed, its digest goes out
		o.full, o.open, o.more, o.stirred = nil, nil, false, true
		return nil, 0
	}
	m := p.message()
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
	case o.stirred && ready(max(o.digestDue, o.changed+Quiet)):
		o.stirred, m.Kind = false, wire.PushDigest
	case o.unnumbered && ready(o.numberDue): // and the set is not quiet: stirred stays
		m.Kind = wire.PushDigest
	default:
		return nil, max(wait, 0)
	}
	if m.Kind == wire.PushDigest {
		m.Sets, o.unnumbered = p.set.Digests(), false
	} else {
		if o.number++; !o.unnumbered {
			o.unnumbered, o.numberDue = true, now+p.set.Jitter(Busy)
		}
	}
	m.Number = o.number
	return &Push{m, records}, 0
}

// message is a push of this node's, without what it brings.
func (p *Pusher) message() wire.PushMessage {
	return wire.PushMessage{Origin: []byte(p.set.Self), Incarnation: p.set.Incarnation}
}

// Digest is sent to a member that begins to take pushes directly. It has the number of the
// last push, which shows the member whether it lacks any.
func (p *Pusher) Digest() *Push {
	m := p.message()
	m.Kind, m.Sets = wire.PushDigest, p.set.Digests()
	o := &p.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	m.Number = o.number
	return &Push{message: m}
}

// shared notes that another member has sent the digests of its sets. If this node holds
// the same, it need not send them again. It reports whether it does.
func (p *Pusher) shared(ours, theirs wire.Sets) bool {
	if theirs != ours {
		return false
	}
	now := p.set.Now()
	o := &p.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stirred = false
	// Others compare digests of quiet sets only.
	o.unnumbered = o.unnumbered && (p.deaf.Load() || now < o.changed+Quiet/2)
	return true
}

// quiet reports whether the sets have not changed for a while.
func (p *Pusher) quiet(now time.Duration) bool {
	o := &p.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	return now >= o.changed+Quiet/2
}
