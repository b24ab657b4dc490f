package kvstore

import (
	"context"
	"fmt"
)

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
		txn := s.db.Begin()
		defer txn.Discard()
		if err := txn.Set(fillerKey(), value); err != nil {
			return err
		}
		return s.committer.finishUnseen(txn)
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
