package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

func (n *namespace) Changes(ctx context.Context, after uint64) iter.Seq2[dbadapter.Change, error] {
	return func(yield func(dbadapter.Change, error) bool) {
		opened, err := n.Snapshot()
		if err != nil {
			yield(dbadapter.Change{}, err)
			return
		}
		s := opened.(*snapshot)
		defer s.Close()
		stopped := false
		err = s.changes(ctx, after, func(c dbadapter.Change) bool {
			stopped = !yield(c, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(dbadapter.Change{}, err)
		}
	}
}

// changes yields the log after a sequence number, and fails if a change is
// missing.
func (s *snapshot) changes(ctx context.Context, after uint64, yield func(dbadapter.Change) bool) error {
	number := s.namespace.number
	m, err := s.meta("read the change log")
	if err != nil {
		return err
	}
	if after >= s.seq {
		return nil
	}
	if after+1 < m.First {
		return fmt.Errorf("read the change log after %d: %w: it begins with %d; scan the records instead",
			after, dbadapter.ErrTrimmed, m.First)
	}
	next := after + 1
	var changes []dbadapter.Change
	read := func(it kv.Iterator) error {
		key := it.Key()
		if len(key) != prefixSize+8 {
			return damage.Corrupt("a log entry", "its key has %d bytes", len(key))
		}
		last := binary.BigEndian.Uint64(key[prefixSize:])
		return it.Value(func(entry []byte) (err error) {
			if changes, err = layout.ReadLogEntry(bytes.Clone(entry), number, last); err != nil {
				return err
			}
			if changes[0].Seq > next || last < next {
				return damage.Corrupt("the change log", "change %d is missing", next)
			}
			changes = changes[next-changes[0].Seq:]
			return nil
		})
	}
	more := true
	err = s.entries(ctx, "read the change log", appendPrefix(nil, number, layout.KindLog), appendLogKey(nil, number, next), read, func() bool {
		for _, c := range changes {
			if more = yield(c); !more {
				return false
			}
		}
		next += uint64(len(changes))
		return true
	})
	if err == nil && more && next != s.seq+1 {
		err = damage.Corrupt("the change log", "it ends with %d, not %d", next-1, s.seq)
	}
	return err
}

// trimBatch is how many log entries one transaction removes.
const trimBatch = 4096

// trim removes the oldest changes once the log is an eighth longer than it
// must be, so that the cost of removing an entry is paid once, in bulk. It runs
// on the committer's goroutine.
func (c *committer) trim(n *namespace) error {
	limit := max(uint64(n.store.options.LogLimit), n.meta.Records/8)
	if n.summary.generation > 0 {
		limit = min(dbadapter.LogReach*limit, max(limit, n.meta.Seq-n.summary.seq))
	}
	if held := n.meta.Seq + 1 - n.meta.First; held <= limit+limit/8 {
		return nil
	}
	keep := n.meta.Seq + 1 - limit // the first change to stay
	txn := c.store.db.Begin()
	defer txn.Discard()
	keys, err := c.store.keys(appendPrefix(nil, n.number, layout.KindLog), appendLogKey(nil, n.number, n.meta.First), trimBatch)
	if err != nil {
		return err
	}
	m := n.meta
	for _, key := range keys {
		last := binary.BigEndian.Uint64(key[prefixSize:])
		if last >= keep {
			break
		}
		if err := txn.Delete(key); err != nil {
			return err
		}
		m.First = last + 1
	}
	if m == n.meta {
		return nil
	}
	return n.putMeta(txn, m)
}
