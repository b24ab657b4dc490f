package gc

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/peer/status"
)

// ErrAnew: what the watermark rested on has changed meanwhile.
var ErrAnew = errors.New("the list of members has changed meanwhile")

const (
	// ceilingStep is by how much more than it says a reading of the clock is made
	// durable, so that not every sync writes. A restart goes on from there: it is far
	// below what any skew allows, and above the interval of any sensible schedule.
	ceilingStep = 10 * time.Second
	// pledgeIntervals is how many sync intervals lie between two pledges, at least:
	// the others have received the last one by then.
	pledgeIntervals = 2
)

// Config is what a collector needs of its set and of the node. Each field is needed.
type Config struct {
	Self roster.ID
	// Sharded: the set is a shard, which ends to recover by its row (package quorum).
	Sharded bool
	Store   dbadapter.Namespace
	// Clock makes the versions of the set's records.
	Clock *hlc.Clock
	// Commits is held while a version is made and committed.
	Commits sync.Locker
	Now     func() time.Time // the machine's wall clock
	// Interval is the mean pause between syncs with a peer.
	Interval func() time.Duration
	// Group has the list of members. PledgeKey is the key of this node's pledge of the set.
	Group     *membership.Group
	PledgeKey []byte
	// Save makes a state durable. Follow follows one, also one that could not be made so.
	Save   func(watermark.State) error
	Follow func(watermark.State)
	// Judge judges records by the list of members as it is when it is called.
	Judge func() Judge
	// Apply commits writes. Commits is held.
	Apply func(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error)
}

// Collector keeps the watermark of a set with its durable state, and collects by it. Its
// methods may be called from several goroutines. Locks are taken in this order:
// Group, or Commits; then the collector's own; then what Save takes.
type Collector struct {
	c Config

	mu   sync.Mutex // guards what follows
	mark watermark.Watermark
	// unsaved: what is durable lags behind mark, which was made safer.
	unsaved bool
	// synced is when a sync with each member ended well.
	synced map[roster.ID]time.Time
	// pledged is when this node pledged last.
	pledged time.Time
	left    status.Swept // of the set, since it was last asked for

	waiting watermark.Waiting
	// ceiling is held while a reading of the clock is made durable, or the ceiling is
	// lowered. It comes before Commits.
	ceiling sync.Mutex
	// sweeping is held by the one sweep that runs.
	sweeping sync.Mutex

	// What follows is read without a lock.
	floor      atomic.Uint64
	recovering atomic.Bool
	renounces  atomic.Bool
}

// New is the collector of a set that was opened. Start comes next.
func New(c Config) *Collector { return &Collector{c: c} }

// Start begins with what is durable. Follow takes up the members and their pledges.
func (g *Collector) Start(s watermark.State, follow func(w *watermark.Watermark) (changed bool)) error {
	g.View(func(w *watermark.Watermark) { *w = watermark.New(g.c.Self, g.c.Sharded, s) })
	g.c.Clock.Observe(hlc.Timestamp(max(s.Pledged, s.Floor, s.Proved, s.RightLost)))
	return g.Update(func(w *watermark.Watermark) bool {
		changed := follow(w)
		w.Resume()
		return changed
	})
}

// View reads the watermark, or changes of it what need not be durable.
func (g *Collector) View(fn func(w *watermark.Watermark)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fn(&g.mark)
}

// Update changes the watermark, and makes what fn says has changed durable before it
// returns. What could not be made durable is taken back, but for a recovery and a
// loss of the right to write, which are the safe side.
func (g *Collector) Update(fn func(w *watermark.Watermark) (changed bool)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.update(fn)
}

// update is Update for a caller that holds mu.
func (g *Collector) update(fn func(w *watermark.Watermark) (changed bool)) error {
	before := g.mark.State()
	changed := fn(&g.mark) || g.unsaved
	defer g.publish()
	if !changed {
		return nil
	}
	err := g.c.Save(g.mark.State())
	if g.unsaved = err != nil; g.unsaved {
		g.mark.Restore(before)
	}
	return err
}

// publish follows a change of the watermark in what is read without its lock. mu is held.
func (g *Collector) publish() {
	now := g.mark.State()
	g.floor.Store(uint64(g.mark.Enforced()))
	g.recovering.Store(now.Recovering)
	g.renounces.Store(now.RightLost != 0)
	g.c.Follow(now)
}

// State is what is to be durable now.
func (g *Collector) State() (s watermark.State) {
	g.View(func(w *watermark.Watermark) { s = w.State() })
	return s
}

// Floor is the floor that records are held against. It is read while Commits is held.
func (g *Collector) Floor() dbadapter.Timestamp { return dbadapter.Timestamp(g.floor.Load()) }

// Recovering reports whether the node may lack what it, or the members, once held.
func (g *Collector) Recovering() bool { return g.recovering.Load() }

// Renounces reports whether records of this node's own are to be set aside: the next sweep does
// so.
func (g *Collector) Renounces() bool { return g.renounces.Load() }

// UpTo is up to when no record with a date is taken: this node has promised to hold all, or has
// collected.
func (g *Collector) UpTo() (t dbadapter.Timestamp) {
	g.View(func(w *watermark.Watermark) { t = w.UpTo() })
	return t
}

// Greeted is the floor that this node greets with.
func (g *Collector) Greeted() (t dbadapter.Timestamp) {
	g.View(func(w *watermark.Watermark) { t = w.Greeted() })
	return t
}

// Waiting is what waits to be collected.
func (g *Collector) Waiting() *watermark.Waiting { return &g.waiting }

// Collection says how far the collection is, and what holds it back.
func (g *Collector) Collection() (c status.Collection) {
	g.View(func(w *watermark.Watermark) {
		c = w.Collection(&g.waiting, dbadapter.Timestamp(g.c.Clock.Latest()), g.synced)
	})
	return c
}

// Tau reads the clock for a snapshot. Each record that this node has written with a
// version up to the reading is committed. It makes no version up to the reading any
// more, also after a restart. It is 0 while the clock is further ahead of the
// machine's than the namespace allows: the members would not believe it.
//
// The caller holds none of the locks.
func (g *Collector) Tau(ctx context.Context) (dbadapter.Timestamp, error) {
	g.ceiling.Lock()
	defer g.ceiling.Unlock()
	g.c.Commits.Lock()
	t := dbadapter.Timestamp(g.c.Clock.Read())
	g.c.Commits.Unlock()
	now, skew := g.c.Now(), g.c.Group.Members().Policy().MaxSkew
	if hlc.Check(t.Time(), now, skew) != nil {
		return 0, nil
	}
	if t <= g.c.Store.Ceiling() {
		return t, nil
	}
	return t, g.c.Store.Raise(ctx, max(t, dbadapter.TimestampAt(now.Add(min(ceilingStep, skew/2)))))
}

// LowerCeiling makes durable what the clock really said last, for a node that is
// about to be closed in order. Opened again, it goes on from there, and not from
// seconds ahead. There its writes would win over what others write meanwhile.
func (g *Collector) LowerCeiling(ctx context.Context) error {
	g.ceiling.Lock()
	defer g.ceiling.Unlock()
	g.c.Commits.Lock()
	defer g.c.Commits.Unlock()
	return g.c.Store.Lower(ctx, max(dbadapter.Timestamp(g.c.Clock.Latest()), g.c.Store.Latest()))
}

// Hold keeps the promise below a clock, durably, for dated records that are about
// to be committed. The least of their clocks that are this node's own is own; 0: none is.
// Commits is held.
func (g *Collector) Hold(clock, own dbadapter.Timestamp) error {
	at := g.Next()
	return g.Update(func(w *watermark.Watermark) bool { return w.Hold(clock, own, at) })
}

// Next is a reading that only a snapshot from now on greets with. Commits is held.
func (g *Collector) Next() dbadapter.Timestamp { return dbadapter.Timestamp(g.c.Clock.Latest()) + 1 }

// Pledge tells the members what this node holds, if one of them waits for that. A
// process that has met no other member yet does not. It may be of a copy from
// before, and its pledge would take the place of the one from which it could tell
// that.
func (g *Collector) Pledge(ctx context.Context) error {
	tau, err := g.Tau(ctx)
	if err != nil || tau == 0 {
		return err
	}
	h := g.c.Group.Hold()
	defer h.Release()
	g.mu.Lock()
	defer g.mu.Unlock()
	collectable := g.waiting.Collectable(tau)
	if len(g.synced) == 0 && g.mark.HasOthers() || !g.mark.PledgeDue(tau, collectable) {
		return nil
	}
	var p *watermark.Pledge
	if err := g.update(func(w *watermark.Watermark) bool {
		p = w.Pledge(tau, collectable)
		return true
	}); err != nil {
		return err
	}
	g.pledged = g.c.Now()
	value, err := p.Encode()
	if err != nil {
		return err
	}
	r, err := h.Say(ctx, g.c.PledgeKey, value)
	if err != nil {
		return err
	}
	return g.update(func(w *watermark.Watermark) bool { return w.Receive(g.c.Self, p, r.Version) })
}

// pledge is Pledge, unless the last one is too short a time ago.
func (g *Collector) pledge(ctx context.Context) error {
	if !g.mayPledge() {
		return nil
	}
	return g.Pledge(ctx)
}

func (g *Collector) mayPledge() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	since := g.c.Now().Sub(g.pledged)
	return g.mark.PledgeUrgent() || since < 0 || since >= pledgeIntervals*g.c.Interval()
}
