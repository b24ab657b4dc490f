package badgerdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter"
)

func appendLogEntry(b []byte, number uint32, changes []dbadapter.Change) []byte {
	start := len(b)
	for i := range changes {
		b = append48(b, uint64(changes[i].Index))
		b = append48(b, uint64(changes[i].Old))
		b = append48(b, uint64(changes[i].New))
	}
	return appendSeal(b, start, seed(number, kindLog, changes[len(changes)-1].Seq))
}

// readLogEntry decodes the changes under a log key.
func readLogEntry(b []byte, number uint32, last uint64) ([]dbadapter.Change, error) {
	body, err := unseal(b, seed(number, kindLog, last), "a log entry")
	if err != nil {
		return nil, err
	}
	count := len(body) / changeSize
	if count == 0 || len(body)%changeSize != 0 || uint64(count) > last {
		return nil, corrupt("a log entry", "it has %d bytes", len(body))
	}
	changes := make([]dbadapter.Change, count)
	for i := range changes {
		at := body[i*changeSize:]
		changes[i] = dbadapter.Change{
			Seq:   last - uint64(count-1-i),
			Index: dbadapter.Index(read48(at)),
			Old:   dbadapter.Checksum(read48(at[numberSize:])),
			New:   dbadapter.Checksum(read48(at[2*numberSize:])),
		}
	}
	return changes, nil
}

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
	if after+1 < m.first {
		return fmt.Errorf("read the change log after %d: %w: it begins with %d; scan the records instead",
			after, dbadapter.ErrTrimmed, m.first)
	}
	next := after + 1
	var changes []dbadapter.Change
	read := func(item *badger.Item) error {
		key := item.Key()
		if len(key) != prefixSize+8 {
			return corrupt("a log entry", "its key has %d bytes", len(key))
		}
		last := binary.BigEndian.Uint64(key[prefixSize:])
		return item.Value(func(entry []byte) (err error) {
			if changes, err = readLogEntry(entry, number, last); err != nil {
				return err
			}
			if changes[0].Seq > next || last < next {
				return corrupt("the change log", "change %d is missing", next)
			}
			changes = changes[next-changes[0].Seq:]
			return nil
		})
	}
	more := true
	err = s.entries(ctx, "read the change log", appendPrefix(nil, number, kindLog), appendLogKey(nil, number, next), read, func() bool {
		for _, c := range changes {
			if more = yield(c); !more {
				return false
			}
		}
		next += uint64(len(changes))
		return true
	})
	if err == nil && more && next != s.seq+1 {
		err = corrupt("the change log", "it ends with %d, not %d", next-1, s.seq)
	}
	return err
}

// trimBatch is how many log entries one transaction removes.
const trimBatch = 4096

// trim removes the oldest changes once the log is an eighth longer than it
// must be, so that the cost of removing an entry is paid once, in bulk. It runs
// on the committer's goroutine.
func (c *committer) trim(n *namespace) error {
	limit := uint64(n.store.options.LogLimit)
	if held := n.meta.seq + 1 - n.meta.first; held <= limit+limit/8 {
		return nil
	}
	keep := n.meta.seq + 1 - limit // the first change to stay
	txn := c.store.db.NewTransaction(true)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	o.Prefix = appendPrefix(nil, n.number, kindLog)
	m := n.meta
	it := txn.NewIterator(o)
	removed := 0
	for it.Seek(appendLogKey(nil, n.number, m.first)); it.Valid() && removed < trimBatch; it.Next() {
		key := it.Item().KeyCopy(nil)
		last := binary.BigEndian.Uint64(key[prefixSize:])
		if last >= keep {
			break
		}
		if err := txn.Delete(key); err != nil {
			it.Close()
			return err
		}
		m.first = last + 1
		removed++
	}
	it.Close()
	if removed == 0 {
		return nil
	}
	return n.putMeta(txn, m)
}
