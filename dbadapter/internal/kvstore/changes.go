package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"log/slog"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

func (n *namespace) Changes(ctx context.Context, after uint64) iter.Seq2[dbadapter.Change, error] {
	return seq.Of(func(yield func(dbadapter.Change) bool) error {
		s, err := n.snapshot()
		if err != nil {
			return err
		}
		defer s.Close()
		return s.changes(ctx, after, yield)
	})
}

// changes yields the log after a sequence number, and fails if a change is
// missing.
func (s *snapshot) changes(ctx context.Context, after uint64, yield func(dbadapter.Change) bool) error {
	number := s.namespace.Number
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

// trimBatch is how many log entries one transaction removes, and trimBeside how many go
// with one that has other work: what an import adds in 12 batches.
const (
	trimBatch  = 4096
	trimBeside = 64
)

// trimmable are the oldest entries of the log that it need not keep, once it is an eighth
// longer than it must be, so that the cost of removing an entry is paid once, in bulk;
// first is the first change that then stays.
func (c *committer) trimmable(n *namespace, m *layout.Meta, most int) (keys [][]byte, first uint64, err error) {
	limit := max(uint64(n.store.options.LogLimit), m.Records/8)
	if n.summary.generation > 0 {
		limit = min(dbadapter.LogReach*limit, max(limit, m.Seq-n.summary.seq))
	}
	first = m.First
	if held := m.Seq + 1 - first; held <= limit+limit/8 {
		return nil, first, nil
	}
	keep := m.Seq + 1 - limit // the first change to stay
	keys, err = c.store.keys(appendPrefix(nil, n.Number, layout.KindLog), appendLogKey(nil, n.Number, first), most)
	for i, key := range keys {
		last := binary.BigEndian.Uint64(key[prefixSize:])
		if last >= keep {
			return keys[:i], first, err
		}
		first = last + 1
	}
	return keys, first, err
}

// trim removes the oldest changes in a transaction of their own. It runs on the
// committer's goroutine, while nothing lands.
func (c *committer) trim(n *namespace) error {
	keys, first, err := c.trimmable(n, &n.Meta, trimBatch)
	if err != nil || len(keys) == 0 {
		return err
	}
	return n.change(func(txn kv.Txn, m *layout.Meta) error {
		m.First = first
		return deleteAll(txn, keys)
	})
}

// stageTrim removes some of the oldest changes in a transaction that is prepared. It sees
// the log as of a commit before; what was added since is not the oldest.
func (c *committer) stageTrim(txn kv.Txn, n *namespace, m *layout.Meta) error {
	keys, first, err := c.trimmable(n, m, trimBeside)
	if err != nil {
		c.store.log.Warn("trim the change log", slog.String("namespace", fmt.Sprintf("%x", n.ID)), slog.Any("err", err))
		return nil
	}
	m.First = first
	return deleteAll(txn, keys)
}
