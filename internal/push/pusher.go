package push

import (
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// ID names a node.
type ID = roster.ID

// Source is the set that pushes, and what its node knows of it. Its functions take no lock
// under which the node calls the Pusher.
type Source struct {
	Config *Config
	// Self is this node, and Incarnation that of its namespace: others count its pushes by
	// both.
	Self        ID
	Incarnation uint64
	// Interval is the mean pause between syncs at intervals. A sync that fails for longer
	// is left to them.
	Interval func() time.Duration
	// Now is the time since a fixed moment. Jitter is a random time around d, from half of
	// it to one and a half.
	Now    func() time.Duration
	Jitter func(d time.Duration) time.Duration
	// Digests are those of the set and of the list of members.
	Digests func() wire.Sets
	Paused  func() bool
	// Members is the list of members, another value with each change of it. Others is to
	// how many of them the set is pushed.
	Members func() Members
	Others  func() int
	// Admits reports whether a node is a member now, With whether it holds the set.
	Admits func(id ID) bool
	With   func(id ID) bool
	// Failed reports whether a sync with this error has not run to its end.
	Failed func(err error) bool
	// Wake asks the driver for a Step. It is called while locks are held, and must not wait.
	Wake func()
}

// Members is a list of members.
type Members interface {
	Has(id ID, role roster.Role) bool
}

// Pusher is what one set pushes, and which syncs pushes bring about. Its methods may be
// called from several goroutines.
type Pusher struct {
	set       Source
	outbox    outbox
	hastening hastening
	// deaf: the last push found a member that hears digests alone. Another one that has
	// sent the digest may not have sent it to that member.
	deaf atomic.Bool
}

// New is what a set pushes that has just been opened.
func New(s Source) *Pusher { return &Pusher{set: s} }

// Network carries pushes.
type Network interface {
	// Lines are the direct lines as of now.
	Lines() *Lines
	// Send sends a push to members directly, and over the mesh where whole is false.
	Send(push *Push, to []ID, whole bool)
	// Sync begins a sync with a member, or with another one where that has no connection.
	// done is called when it has ended, with the one that it was with.
	Sync(with, or ID, done func(by ID, err error))
}

// Step sends all that is to be pushed to an audience now, and begins a sync where one is
// due. It returns how long the driver waits until the next one, unless Wake is called
// before; 0: for good.
func (p *Pusher) Step(audience map[ID]bool, net Network) (wait time.Duration) {
	push, wait := p.Next()
	for ; push != nil; push, wait = p.Next() {
		to, whole := p.Direct(push, audience, net.Lines())
		net.Send(push, to, whole)
	}
	with, or, pause := p.NextSync()
	if with != "" {
		net.Sync(with, or, func(by ID, err error) { p.SyncDone(with, by, err) })
	}
	if wait == 0 || pause > 0 && pause < wait {
		wait = pause
	}
	return wait
}

// Verdict is what becomes of a push that has arrived.
type Verdict uint8

// The verdicts.
const (
	// Ignored: it is neither committed nor passed on.
	Ignored Verdict = iota
	// Refused: it is ignored, and the peer that has sent it is at fault.
	Refused
	// Taken: it is committed, and passed on.
	Taken
)

// Config says whether and how fast what a node writes is pushed to the other members.
type Config struct {
	// On: the driver carries pushes.
	On bool
	// Send, if not 0, is how many bytes all copies of pushes that the node sends take in a
	// second, at most.
	Send int
}

const (
	// Batch is how long a write waits for others to share its message.
	Batch = 5 * time.Millisecond
	// Quiet is for how long a set must not have changed before its digest is sent.
	Quiet = time.Second
	// Busy is after what time from a push a node sends the number of its last one
	// although the set is not quiet. It is drawn from half of Busy to one and a
	// half. So a member that has missed the push learns of it. A set that is quiet sends
	// its digest before.
	Busy = 6 * time.Second
	// Pause is the least time between two syncs with a peer that pushes bring about.
	Pause = 500 * time.Millisecond
	// Rate is how many bytes of records are pushed in a second, at most, and a
	// quarter of it at once. For what is beyond, a sync is asked for.
	Rate = 4 << 20
)

// MeshCopies is how many copies of a push its origin sends at most where others
// pass it on. The driver's mesh has no more peers.
const MeshCopies = 4

// rate is how many bytes of records are pushed in a second.
func (p *Pusher) rate() int {
	c := p.set.Config
	if c.Send == 0 {
		return Rate
	}
	copies := p.set.Others()
	if copies >= wire.MaxDirect {
		copies = MeshCopies
	}
	return min(Rate, c.Send/max(copies, 1))
}
