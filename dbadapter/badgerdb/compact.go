package badgerdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter"
)

// Badger frees the space of what was removed when it merges the tables that hold
// it with those that hold the marks of its removal. Its own compactions follow the
// sizes of the levels, so that in a store that has become smaller nothing moves.

// fillerSize is the length of a value that fills Badger's table in memory.
const fillerSize = inline / 2

// Compact frees the space on disk that removed records took: it merges all tables,
// and so reads and writes the whole store once. Writes go on meanwhile, slower;
// Close waits. What an open snapshot still shows stays.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.compact(ctx); err != nil {
		return fmt.Errorf("compact store %s: %w", s.dir, err)
	}
	return nil
}

func (s *Store) compact(ctx context.Context) error {
	s.compacting.Lock()
	defer s.compacting.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return fmt.Errorf("the store is %w", dbadapter.ErrClosed)
	}
	var size int64
	for _, t := range s.db.Tables() {
		size += int64(t.OnDiskSize)
	}
	if s.disk.min > 0 { // the merged tables stand beside the old ones for a while
		if err := s.disk.require(size + s.disk.min); err != nil {
			return err
		}
	}
	if s.isSmall() {
		return s.committer.do(ctx, s.mergeSmall)
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	return s.db.Flatten(1)
}

// isSmall reports whether all tables stand in the first level: they are five at
// most, and Badger's Flatten leaves them as they are.
func (s *Store) isSmall() bool {
	return !slices.ContainsFunc(s.db.Tables(), func(t badger.TableInfo) bool { return t.Level > 0 })
}

// mergeSmall merges the few tables of a small store, and what is in memory: Badger
// does so when it drops a prefix. Commits wait for it, a second perhaps.
func (s *Store) mergeSmall() error {
	if err := s.replaceFiller([]byte{0}); err != nil {
		return err
	}
	if err := s.db.DropPrefix(fillerKey()); err != nil {
		return err
	}
	s.committer.publish(func() {})
	return nil
}

// flush brings all that has been committed from Badger's table in memory into the
// tables on disk. Badger has no call for that; a full table is flushed.
func (s *Store) flush(ctx context.Context) error {
	var last uint64
	filler := make([]byte, fillerSize)
	for i := range memTable/fillerSize + 2 {
		err := s.committer.do(ctx, func() error {
			if i == 0 {
				last = s.db.MaxVersion()
			}
			return s.replaceFiller(filler)
		})
		if err != nil {
			return err
		}
		if s.flushed(last) {
			break
		}
	}
	if err := s.committer.do(ctx, func() error { return s.remove([][]byte{fillerKey()}) }); err != nil {
		return err
	}
	for !s.flushed(last) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// replaceFiller commits one more version of the filler.
func (s *Store) replaceFiller(filler []byte) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := txn.Set(fillerKey(), filler); err != nil {
		return err
	}
	return s.committer.finishUnseen(txn)
}

// flushed reports whether a table on disk holds that version, or a later one: they
// are written in order.
func (s *Store) flushed(version uint64) bool {
	for _, t := range s.db.Tables() {
		if t.MaxVersion >= version {
			return true
		}
	}
	return false
}

// fillerKey is where the filler stands.
func fillerKey() []byte { return appendPrefix(nil, 0, kindFiller) }
