package kvstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

// prepared is a transaction that is to be committed.
type prepared struct {
	txn    kv.Txn
	staged []*part
	arena  *[]byte // what the transaction refers to
	// landed ends what waits for the commit to end.
	landed func()
}

// commit decides the group, and commits it or returns what does so, and sets each
// request's outcome.
func (c *committer) commit(group []*queue.Request[*batch], wait func()) (land func()) {
	if group = c.withRoom(group); len(group) == 0 {
		return nil
	}
	p, beside, err := c.prepare(group, wait)
	switch {
	case errors.Is(err, kv.ErrTooBig) && len(group) > 1:
		wait()
		for i, r := range group {
			r.Batch.Outcomes, r.Err = nil, nil
			if land := c.commit(group[i:i+1], wait); land != nil {
				land()
			}
		}
		return nil
	case errors.Is(err, kv.ErrTooBig):
		grouped.Fail(group, fmt.Errorf("apply: %w: many keys share an index, and their bucket does not fit into one transaction; apply fewer writes at once", dbadapter.ErrLimit))
		return nil
	case err != nil:
		grouped.Fail(group, err)
		return nil
	case p == nil:
		wait() // what lands may hold what this group has
		if c.failed != nil {
			grouped.Fail(group, c.failed)
		}
		return nil
	}
	land = func() {
		if err := c.land(p); err != nil {
			grouped.Fail(group, err)
		}
	}
	if beside {
		return land
	}
	land()
	for _, s := range p.staged {
		if c.failed != nil {
			break
		}
		if err := errors.Join(c.trim(s.Namespace), c.trimKept(s.Namespace)); err != nil {
			c.store.log.Warn("trim the change log and the kept log", slog.String("namespace", fmt.Sprintf("%x", s.Namespace.ID)), slog.Any("err", err))
		}
	}
	return nil
}

// withRoom refuses what the disk has no room for, and returns the rest of the group.
func (c *committer) withRoom(group []*queue.Request[*batch]) []*queue.Request[*batch] {
	fuller := c.store.awake()
	full := c.store.disk.write()
	if fuller == nil && full == nil {
		return group
	}
	if fuller == nil {
		fuller = c.store.disk.remove()
	}
	var rest []*queue.Request[*batch]
	for _, r := range group {
		switch {
		case fuller != nil:
			r.Err = fuller
		case !removes(r.Batch):
			r.Err = full
		default:
			rest = append(rest, r)
		}
	}
	return rest
}

// removes reports whether a batch makes room in the end.
func removes(b *batch) bool {
	return !slices.ContainsFunc(b.Items, func(i commit.Item) bool { return !i.Record.Deleted && i.Action != dbadapter.Collect })
}

type part = grouped.Part[*namespace]

// prepare decides the group and stages what it touches; nil if that is nothing. beside:
// the next transaction may be prepared while this one lands. Where it fails, what was
// written ahead of it is removed.
func (c *committer) prepare(group []*queue.Request[*batch], wait func()) (p *prepared, beside bool, err error) {
	before := c.landing.Load()
	if before == nil && c.failed != nil {
		return nil, false, c.failed
	}
	ended := c.underway.begin()
	parts := c.decide(group, before)
	beside = group[0].Writes >= queue.Large
	for _, p := range parts {
		// The kept log is written in transactions before and after this one.
		beside = beside && p.Namespace.Meta.Own == 0 && len(p.Group.Leavers()) == 0
	}
	if p, err = c.stageAll(parts, beside, wait); p == nil {
		if err != nil && !beside && c.failed == nil {
			// A later commit, be it of another namespace, would let it be seen.
			for _, p := range parts {
				err = errors.Join(err, c.dropAhead(p.Namespace))
			}
		}
		ended()
		return nil, false, err
	}
	p.landed = ended
	c.landing.Store(p)
	return p, beside, nil
}

// decide runs the batches against the last commit, and what lands on it.
func (c *committer) decide(group []*queue.Request[*batch], before *prepared) []*part {
	view := c.store.lastCommit()
	defer view.release()
	return grouped.Decide(group, func(n *namespace) *commit.Group { return n.newGroup(view, before) })
}

// stageAll stages the parts as one transaction.
func (c *committer) stageAll(parts []*part, beside bool, wait func()) (_ *prepared, err error) {
	if !beside {
		wait()
		if c.failed != nil {
			return nil, c.failed
		}
		for _, p := range parts {
			if err := errors.Join(c.dropAhead(p.Namespace), c.keepAhead(p)); err != nil {
				return nil, err
			}
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	p := &prepared{txn: c.store.db.Begin(), staged: parts}
	defer func() {
		*p.arena, c.arena = c.arena, nil
		if err != nil {
			c.discard(p)
		}
	}()
	p.arena, _ = c.arenas.Get().(*[]byte)
	if p.arena == nil {
		p.arena = new([]byte)
	}
	c.arena = (*p.arena)[:0]
	for _, part := range parts {
		if err := c.stage(p.txn, part, beside); err != nil {
			return nil, err
		}
	}
	if c.head, err = c.stageHead(p.txn); err != nil {
		return nil, err
	}
	for _, s := range p.staged {
		s.Namespace.written.add(s.Changes)
		s.Namespace.Meta = s.Meta
	}
	return p, nil
}

// discard ends a transaction, whose arena serves again.
func (c *committer) discard(p *prepared) {
	p.txn.Discard()
	c.arenas.Put(p.arena)
}

// land commits a transaction, and lets observers and new snapshots see it in one step.
func (c *committer) land(p *prepared) error {
	defer c.landing.CompareAndSwap(p, nil) // after c.failed is set
	defer p.landed()
	defer c.discard(p)
	if err := c.commitTxn(p.txn); err != nil {
		return err
	}
	for _, s := range p.staged {
		s.Namespace.cache.committed(s.Meta.Seq, s.Changes)
	}
	// Observers are told under the lock that snapshots take: a snapshot holds a
	// commit exactly if they have been told of it.
	c.publish(func() {
		for _, s := range p.staged {
			s.Namespace.Shown = s.Meta
			if s.Namespace.Observe != nil {
				s.Namespace.Observe(s.Changes)
			}
		}
	})
	return nil
}

// stageHead adds the store's head to a transaction.
func (c *committer) stageHead(txn kv.Txn) (head, error) {
	h := c.head
	h.commits++
	if err := txn.Set(metaKey(0), h.encode()); err != nil {
		return c.head, err
	}
	return h, nil
}

// commitTxn commits a transaction with the store's head. If the engine then fails, it is
// unknown what reached the disk, and the store takes no more writes.
func (c *committer) commitTxn(txn kv.Txn) error {
	if c.failed != nil {
		return c.failed // the transaction before is not there
	}
	if err := txn.Commit(); err != nil {
		c.failed = fmt.Errorf("write to the database: %w; whether the last write was kept is unknown, and no more are taken: check the disk and open the store again", err)
		c.store.options.Failed(c.failed)
		return c.failed
	}
	c.transactions.Add(1)
	return nil
}

// finish adds the store's head to a transaction and commits it, where no other one lands.
func (c *committer) finish(txn kv.Txn) error {
	if err := c.store.disk.small(); err != nil {
		return err
	}
	h, err := c.stageHead(txn)
	if err != nil {
		return err
	}
	if err := c.commitTxn(txn); err != nil {
		return err
	}
	c.head = h
	return nil
}

// unseen commits what stage puts into a transaction, which changes no namespace. Snapshots go
// on from it all the same: an older transaction would keep the engine from making room.
func (c *committer) unseen(stage func(kv.Txn) error) error {
	txn := c.store.db.Begin()
	defer txn.Discard()
	err := stage(txn)
	if err == nil {
		err = c.finish(txn)
	}
	if err == nil {
		c.publish(func() {})
	}
	return err
}

// publish makes the last commit the one that snapshots see; set runs under the
// store's lock.
func (c *committer) publish(set func()) {
	s := c.store
	fresh := newReadTxn(s.db)
	s.mu.Lock()
	old := s.last
	s.last = fresh
	set()
	s.mu.Unlock()
	old.release()
}

// committer is the single writer of a store. Its queue gathers the batches of many
// callers, and each group is one transaction of the database with one write to the
// disk.
type committer struct {
	store *Store
	queue *queue.Queue[*batch]

	underway underway

	// landing is the transaction that lands while the next one is prepared.
	landing atomic.Pointer[prepared]

	// Used by the queue's goroutine only, until it has been stopped.
	head  head   // with the transaction that lands
	arena []byte // index and log entries of the transaction that is prepared
	puts  []put
	// failed is set for good when it is unknown what the disk holds. While a transaction
	// lands, the goroutine that does so may set it, and alone reads it.
	failed error

	arenas sync.Pool // of *[]byte
	// transactions counts what was committed; tests read it.
	transactions atomic.Int64
}

// batch is what one caller of Apply writes.
type batch = grouped.Batch[*namespace]

func (c *committer) start(s *Store, h head) {
	c.store, c.head = s, h
	c.queue = queue.Start(c.commit)
}

// stop ends the goroutine after what is queued. Idempotent.
func (c *committer) stop() { c.queue.Stop() }

// do runs a function between two commits.
func (c *committer) do(ctx context.Context, run func() error) error {
	return c.queue.Do(ctx, func() error {
		if c.failed != nil {
			return c.failed
		}
		if err := c.store.awake(); err != nil && !errors.Is(err, dbadapter.ErrNoRoom) {
			return err
		}
		return run()
	})
}

// underway is the commit that runs now. Work in the background waits for its end
// between two pieces: a copy that keeps a processor busy costs a commit far more
// than its share, since a commit is a chain of short steps of several goroutines,
// each of which waits for a processor anew (docs/PERFORMANCE.md, "Backups").
type underway struct{ commit atomic.Pointer[chan struct{}] }

// begin begins a commit; ended ends it. Another one may begin before.
func (u *underway) begin() (ended func()) {
	c := make(chan struct{})
	u.commit.Store(&c)
	return func() {
		u.commit.CompareAndSwap(&c, nil)
		close(c)
	}
}

// mostWait bounds how long one piece waits, so that a copy goes on beside commits
// that follow one another without a pause, or that a slow disk holds up.
const mostWait = 2 * time.Millisecond

// giveWay waits until the commit that runs now, if there is one, has ended, for
// mostWait, or for the context. If no commit runs, it yields the processor to goroutines
// that wait for one: writes of another store, for example.
func (u *underway) giveWay(ctx context.Context) {
	ended := u.commit.Load()
	if ended == nil {
		runtime.Gosched()
		return
	}
	bound := time.NewTimer(mostWait)
	defer bound.Stop()
	select {
	case <-*ended:
	case <-bound.C:
	case <-ctx.Done():
	}
}
