package kvstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// autoCompactor compacts the store by itself. An engine may keep what was overwritten, and
// the marks of what was removed. Badger's own compactions follow the sizes of the levels, so
// that in a store that stays as large nothing moves.
//
// Once the store has been at rest for a while after writes, it estimates how much of it is
// stale, and compacts it if that is more than half as much as what is live. That writes the
// live entries once, after at least half as much has been written in vain. A store that is
// written to without a pause is examined all the same, at long intervals.
type autoCompactor struct {
	store  *Store
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
}

const (
	restTick = time.Second
	// restCommits is how many commits a second still count as rest.
	restCommits = 5
	// restAfter is how long the store must be at rest, and restOverdue how long one
	// that never is goes without a look.
	restAfter   = 10 * time.Second
	restOverdue = 10 * time.Minute
	// leastStale is worth a compaction: an engine's logs take as much.
	leastStale = 16 << 20
)

func (r *autoCompactor) start(s *Store) {
	ctx, cancel := context.WithCancel(context.Background())
	*r = autoCompactor{store: s, cancel: cancel, done: make(chan struct{})}
	tick := time.NewTicker(restTick)
	go func() {
		defer close(r.done)
		defer tick.Stop()
		r.loop(ctx, tick.C)
	}()
}

// close ends the goroutine, and a compaction that it runs.
func (r *autoCompactor) close() {
	r.cancel()
	<-r.done
}

// loop looks at the store at ticks, one each restTick.
func (r *autoCompactor) loop(ctx context.Context, ticks <-chan time.Time) {
	var p pulse
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-ticks:
		}
		if !p.due(now, r.store.committer.transactions.Load()) {
			continue
		}
		if err := r.store.background(r.store.tidy(ctx)); err != nil && ctx.Err() == nil {
			r.store.log.Warn("the space of overwritten records could not be freed", slog.String("dir", r.store.dir), slog.Any("err", err))
		}
		r.store.db.Rest()
		p.checked(now, r.store.committer.transactions.Load())
	}
}

// pulse decides when the store is looked at.
type pulse struct {
	commits     int64     // at the last tick
	busyAt      time.Time // the last tick with more commits than rest has
	checkedAt   time.Time
	checkedWith int64 // commits
}

// due takes the number of commits so far, once each restTick.
func (p *pulse) due(now time.Time, commits int64) bool {
	if commits-p.commits > restCommits {
		p.busyAt = now
	}
	p.commits = commits
	if commits == p.checkedWith {
		p.checkedAt = now // there is nothing new to look at
		return false
	}
	return now.Sub(p.busyAt) >= restAfter && now.Sub(p.checkedAt) >= restAfter || now.Sub(p.checkedAt) >= restOverdue
}

func (p *pulse) checked(now time.Time, commits int64) {
	p.checkedAt, p.checkedWith, p.commits = now, commits, commits
}

// tidy compacts the store if much of it is stale.
func (s *Store) tidy(ctx context.Context) error {
	stale, size, err := s.db.Stale(ctx, commits{s})
	if err != nil || stale < leastStale || stale <= (size-stale)/2 {
		return err
	}
	began := time.Now()
	if err := s.compact(ctx); err != nil {
		return err
	}
	s.log.Info("the space of overwritten and removed records has been freed",
		slog.Int64("bytes_before", size), slog.Int64("bytes", s.db.Size()), slog.Duration("took", time.Since(began)))
	return nil
}

// Compact frees the space on disk that overwritten and removed records took: it merges
// all files, and so reads and writes the whole store once. Writes go on meanwhile,
// slower; Close waits. What an open snapshot still shows stays. A store does so by
// itself when it is at rest and much of it is stale (autocompact.go).
func (s *Store) Compact(ctx context.Context) error {
	if err := s.compact(ctx); err != nil {
		return fmt.Errorf("compact store %s: %w", s.dir, err)
	}
	return nil
}

func (s *Store) compact(ctx context.Context) error {
	s.compacting.Lock()
	defer s.compacting.Unlock()
	if err := s.life.Err(); err != nil {
		return err
	}
	if err := s.disk.small(); err != nil {
		return err
	}
	// The merged files stand beside the old ones for a while.
	if err := s.disk.require(s.db.Need(true) + s.disk.min/removing); err != nil {
		return err
	}
	return s.db.Compact(ctx, commits{s})
}

// commits is a store as kv.Commits.
type commits struct{ store *Store }

func (c commits) Pause(ctx context.Context) { c.store.committer.underway.giveWay(ctx) }

func (c commits) Fill(ctx context.Context, value []byte) error {
	s := c.store
	return s.committer.do(ctx, func() error {
		if value == nil {
			return s.remove([][]byte{fillerKey()})
		}
		return s.committer.unseen(func(txn kv.Txn) error { return txn.Set(fillerKey(), value) })
	})
}

func (c commits) Between(ctx context.Context, run func(filler []byte) error) error {
	s := c.store
	return s.committer.do(ctx, func() error {
		if err := run(fillerKey()); err != nil {
			return err
		}
		s.committer.publish(func() {})
		return nil
	})
}

// fillerKey is where the filler stands.
func fillerKey() []byte { return appendPrefix(nil, 0, kindFiller) }

var _ dbadapter.Examiner = (*Store)(nil)

// Examine reads all files of the database through; see dbadapter.Examiner.
// Close waits for it.
func (s *Store) Examine(ctx context.Context) error {
	s.compacting.Lock()
	defer s.compacting.Unlock()
	if err := s.life.Err(); err != nil {
		return fmt.Errorf("examine store %s: %w", s.dir, err)
	}
	if err := s.db.Examine(ctx); err != nil {
		return fmt.Errorf("examine store %s: %w", s.dir, err)
	}
	return nil
}
