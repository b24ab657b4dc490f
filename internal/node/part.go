package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/gc"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Part is a set of records that is synced by itself. It is one of the data of a
// namespace, or its control namespace, which holds the list of members.
type Part struct {
	Keys  reconcile.Keys
	Store dbadapter.Namespace
	Live  *replica.Live

	ns  *Namespace
	set *Set // of which it is the part; nil: it is the control namespace

	// commits keeps the making of a version and its commit together. If a later
	// version were committed in between, the write would be lost as soon as it is
	// made. Single writes share it, and each other's fsync. So do records from
	// peers, whose versions are made. What commits a batch of this node has it
	// alone.
	commits commitLock
	pace    pace // of records from peers
	// verifying is the pace at which their signatures are, and examining how many
	// admissions check them now.
	verifying pace
	examining atomic.Int32
	// slowly is held for a piece of an admission while single writes come: several
	// admissions take turns then.
	slowly   sync.Mutex
	growing  sync.Mutex // held while the live sketch is being lengthened
	declined refusals.Declined
	openings syncing.Openings
	equal    syncing.Equal
	kept     keptSummary
}

// open opens the part's records and brings its live sketch up to date.
func (p *Part) open(ctx context.Context, ns *Namespace, keys reconcile.Keys, store OpenStore) (err error) {
	p.ns, p.Keys = ns, keys
	if ns.node.Weaken != nil {
		p.Keys.Hasher = ns.node.Weaken(p.Keys.Hasher)
	}
	p.Live = replica.New(p.Keys)
	if p.Store, err = store(ctx, p.Keys.ID, p.Keys.Hasher, p.observe); err != nil {
		p.Store = nil // also where the driver gives something beside the error
		return err
	}
	if err := p.load(ctx); err != nil {
		err = errors.Join(err, p.Store.Close())
		p.Store = nil
		return err
	}
	return nil
}

// observe is told of each commit.
func (p *Part) observe(changes []dbadapter.Change) {
	p.Live.Observe(changes)
	if p.set != nil {
		p.set.observe(changes)
		return
	}
	for _, set := range p.ns.Sets() { // digests are told together with that of the control namespace
		set.pushes.Changed()
	}
}

// isControl reports whether the part is the control namespace of its namespace.
func (p *Part) isControl() bool { return p.set == nil }

// Namespace is that of the part.
func (p *Part) Namespace() *Namespace { return p.ns }

// Set is the set of which it is the part; nil: it is the control namespace.
func (p *Part) Set() *Set { return p.set }

// Grow lengthens the live sketch where the part has outgrown it, and reports
// whether it did. One sync does so at a time; the others use the shorter one.
func (p *Part) Grow(ctx context.Context, tick func() error) (bool, error) {
	if !p.growing.TryLock() {
		return false, nil
	}
	defer p.growing.Unlock()
	grown, err := p.Live.Grow(ctx, p.Store, tick)
	if errors.Is(err, reconcile.ErrBusy) {
		return false, nil // too much was written meanwhile; the next sync tries again
	}
	return grown, err
}

// Apply commits writes in as many transactions as they need. Beside an error, it
// returns the outcomes of those that were committed before.
func (p *Part) Apply(ctx context.Context, writes []dbadapter.Write) (outcomes []dbadapter.Outcome, err error) {
	for len(writes) > 0 {
		n := dbadapter.OneBatch(writes)
		some, err := p.Store.Apply(ctx, writes[:n])
		if err != nil {
			return outcomes, err
		}
		outcomes, writes = append(outcomes, some...), writes[n:]
	}
	return outcomes, nil
}

// Get reads a record.
func (p *Part) Get(key []byte) (dbadapter.Record, error) {
	snap, err := p.Store.Snapshot()
	if err != nil {
		return dbadapter.Record{}, err
	}
	defer snap.Close()
	return snap.Get(key)
}

// Held is what is held under a key, a tombstone too, or nil.
func (p *Part) Held(key []byte) (*dbadapter.Record, error) {
	held, err := p.Get(key)
	switch {
	case errors.Is(err, dbadapter.ErrNotFound):
		return nil, nil //nolint:nilnil // nothing is an answer
	case err != nil:
		return nil, err
	}
	return &held, nil
}

// commitLock is a lock that tells its holders of one another: whether others wait for
// it, and whether single writes have come. Each that waits gets it in turn, as with
// sync.RWMutex.
type commitLock struct {
	lock    sync.RWMutex
	waiting atomic.Int32
	// singles counts the single writes that have begun.
	singles atomic.Uint64
}

func (l *commitLock) Lock() {
	l.waiting.Add(1)
	l.lock.Lock()
	l.waiting.Add(-1)
}

func (l *commitLock) RLock() {
	l.waiting.Add(1)
	l.lock.RLock()
	l.waiting.Add(-1)
}

func (l *commitLock) Unlock()  { l.lock.Unlock() }
func (l *commitLock) RUnlock() { l.lock.RUnlock() }

// single is RLock for a single write.
func (l *commitLock) single() {
	l.singles.Add(1)
	l.RLock()
}

// wanted reports whether others wait.
func (l *commitLock) wanted() bool { return l.waiting.Load() > 0 }

// pace sizes the slices that records from peers are committed in, and the pieces in
// which their signatures are verified. A single write that arrives meanwhile waits
// for the slice that is being committed, and shares its own transaction with
// another slice. So slices are small while single writes arrive, and for some time
// after the last. Single writes arrive in bursts, and slices that grow between two
// bursts would be large at the next one. While none arrive, slices are large, which
// takes less in all.
type pace struct {
	mu   sync.Mutex // guards what follows
	size int        // of the last slice; 0 before the first
	seen uint64     // commitLock.singles as of then
	came time.Duration
}

// next is the size of the next slice, given how many single writes have begun, and the
// time since a fixed moment. It is 0 always where there is no such time: slices then grow
// as soon as no write has come during one.
func (p *pace) next(singles uint64, now time.Duration, least, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case singles != p.seen:
		p.size, p.came = least, now
	case p.size == 0:
		p.size = most
	case p.came != 0 && now-p.came < paceRest:
		p.size = least
	default:
		p.size = min(2*p.size, most)
	}
	p.seen = singles
	return p.size
}

// Set is a set of records of a namespace that is synced, pushed and collected by
// itself. It has what the node has decided about that set. The records are in the
// part that it embeds; members, clock and state are the namespace's.
type Set struct {
	Part

	shard placement.Shard // 0 in a namespace without shards
	// committed, if not nil, is told after each commit.
	committed func(*Set)
	rejected  refusals.Rejections
	askers    askers
	watched   changes.Source
	gc        *gc.Collector
	bulk      syncing.BulkTurn
	pushes    *push.Pusher
	tenure    tenure
	// log: the set was left, and is there for its kept log. emptied: its records are deleted.
	log     bool
	emptied atomic.Bool
}

// Shard is the set's number among the shards of the namespace; 0 if that has none.
func (set *Set) Shard() placement.Shard { return set.shard }

// open opens the set's records.
func (set *Set) open(ctx context.Context, ns *Namespace, keys reconcile.Keys) error {
	set.Part.set, set.committed = set, ns.lifecycle.committed
	set.tenure.host.Self = ns.node.ID
	set.pushes = push.New(push.Source{
		Config: &ns.node.Push, Self: ns.node.ID, Incarnation: ns.incarnation, Interval: ns.node.interval,
		Now: ns.node.elapsed, Jitter: func(d time.Duration) time.Duration { return ns.node.jittered(d, ForPush) },
		Digests: set.digests, Paused: ns.Paused,
		Members: func() push.Members { return ns.Members() }, Others: set.others, Admits: ns.Admits, With: set.With,
		Failed: syncing.Failed, Wake: set.pushable,
	})
	if err := set.Part.open(ctx, ns, keys, ns.lifecycle.store); err != nil {
		return err
	}
	set.gc = set.newCollector()
	set.watched = changes.Source{Store: set.Store, Hasher: set.Keys.Hasher, Live: set.Live, Now: ns.node.Now, Reserved: ns.reserved, Behind: ns.BehindReserved}
	return nil
}

// Pushes are what the set pushes, and the syncs that pushes bring about.
func (set *Set) Pushes() *push.Pusher { return set.pushes }

// pushable tells the driver to ask Pushes for a step.
func (set *Set) pushable() {
	if set.ns.node.Pushable != nil {
		set.ns.node.Pushable(set)
	}
}

// digests are those of the set and of the control namespace.
func (set *Set) digests() (s wire.Sets) {
	s.Data, _, _ = set.Live.State()
	s.Control, _, _ = set.ns.Control.Live.State()
	return s
}

// Watched is the set as watches see it.
func (set *Set) Watched() *changes.Source { return &set.watched }

// observe is told of each commit.
func (set *Set) observe(changes []dbadapter.Change) {
	if set.tenure.ended() { // the records are being deleted
		return
	}
	set.wakeAskers(changes)
	if set.committed != nil {
		set.committed(set)
	}
	set.pushes.Changed()
}

// Sum is that of what is held durably.
func (set *Set) Sum() dbadapter.Sum {
	digest, records, _ := set.Live.State()
	return dbadapter.Sum{Records: records, Digest: digest}
}

// Status is what this node would answer a member that asks how it is: what it knows of the
// records, and what its driver does of the rest.
func (set *Set) Status() *wire.StatusAnswer {
	a := &wire.StatusAnswer{Sum: set.Sum(), Newest: set.Store.Latest()}
	if set.ns.describe != nil {
		set.ns.describe(a)
	}
	return a
}

// Recovers reports whether the set is not whole: the node may lack what it, or the members, once held of it. (4)
func (set *Set) Recovers() bool { return set.gc.Recovering() }
