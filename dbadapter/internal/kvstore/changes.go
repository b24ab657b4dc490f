package kvstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// A log entry holds the changes of one commit, or a part of them, under the
// sequence number of the last one:
//
//	count(uvarint) { index(6) old(6) new(6) digest(32) records(varint) length(uvarint) key }…  seal(8)

// changeSize is the least that a change takes.
const changeSize = 3*numberSize + dbadapter.DigestSize + 2

// A log entry is bounded to some 80 KiB, however long the keys are.
const (
	logEntryChanges = 1024
	logEntryBytes   = 64 << 10
)

// oneLogEntry is how many of the changes, from the first on, stand in one entry: at
// least one.
func oneLogEntry(changes []dbadapter.Change) int {
	size := 0
	for i := range changes {
		if size += changeSize + len(changes[i].Key); i > 0 && (i == logEntryChanges || size > logEntryBytes) {
			return i
		}
	}
	return len(changes)
}

func appendLogEntry(b []byte, number uint32, changes []dbadapter.Change) []byte {
	start := len(b)
	b = binary.AppendUvarint(b, uint64(len(changes)))
	for i := range changes {
		c := &changes[i]
		b = append48(b, uint64(c.Index))
		b = append48(b, uint64(c.Old))
		b = append48(b, uint64(c.New))
		b = c.Delta.AppendBinary(b)
		b = binary.AppendVarint(b, int64(c.Records))
		b = binary.AppendUvarint(b, uint64(len(c.Key)))
		b = append(b, c.Key...)
	}
	return appendSeal(b, start, seed(number, kindLog, changes[len(changes)-1].Seq))
}

// readLogEntry decodes the changes under a log key.
func readLogEntry(b []byte, number uint32, last uint64) ([]dbadapter.Change, error) {
	body, err := unseal(b, seed(number, kindLog, last), "a log entry")
	if err != nil {
		return nil, err
	}
	count, w := binary.Uvarint(body)
	rest := body[max(w, 0):]
	if w <= 0 || count == 0 || count > last || count > uint64(len(rest)/changeSize) {
		return nil, kv.Corrupt("a log entry", "it has %d bytes", len(body))
	}
	rest = slices.Clone(rest) // the keys refer to it
	changes := make([]dbadapter.Change, count)
	for i := range changes {
		c := &changes[i]
		c.Seq = last - (count - 1 - uint64(i))
		if rest, err = readChange(rest, c); err != nil {
			return nil, err
		}
	}
	if len(rest) > 0 {
		return nil, kv.Corrupt("a log entry", "something stands behind its end")
	}
	return changes, nil
}

// readChange takes a change off the bytes of a log entry.
func readChange(b []byte, c *dbadapter.Change) (rest []byte, err error) {
	if len(b) < changeSize {
		return nil, kv.Corrupt("a log entry", "it is cut short")
	}
	c.Index = dbadapter.Index(read48(b))
	c.Old = dbadapter.Checksum(read48(b[numberSize:]))
	c.New = dbadapter.Checksum(read48(b[2*numberSize:]))
	c.Delta = dbadapter.DigestFromBytes([dbadapter.DigestSize]byte(b[3*numberSize:]))
	b = b[3*numberSize+dbadapter.DigestSize:]
	records, w := binary.Varint(b)
	if w <= 0 {
		return nil, kv.Corrupt("a log entry", "it is cut short")
	}
	b = b[w:]
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, kv.Corrupt("a log entry", "a key goes past its end")
	}
	c.Records, c.Key = int(records), b[w:w+int(n):w+int(n)]
	return b[w+int(n):], nil
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
	read := func(it kv.Iterator) error {
		key := it.Key()
		if len(key) != prefixSize+8 {
			return kv.Corrupt("a log entry", "its key has %d bytes", len(key))
		}
		last := binary.BigEndian.Uint64(key[prefixSize:])
		return it.Value(func(entry []byte) (err error) {
			if changes, err = readLogEntry(entry, number, last); err != nil {
				return err
			}
			if changes[0].Seq > next || last < next {
				return kv.Corrupt("the change log", "change %d is missing", next)
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
		err = kv.Corrupt("the change log", "it ends with %d, not %d", next-1, s.seq)
	}
	return err
}

// trimBatch is how many log entries one transaction removes.
const trimBatch = 4096

// trim removes the oldest changes once the log is an eighth longer than it
// must be, so that the cost of removing an entry is paid once, in bulk. It runs
// on the committer's goroutine.
func (c *committer) trim(n *namespace) error {
	limit := max(uint64(n.store.options.LogLimit), n.meta.records/8)
	if n.summary.generation > 0 {
		limit = min(dbadapter.LogReach*limit, max(limit, n.meta.seq-n.summary.seq))
	}
	if held := n.meta.seq + 1 - n.meta.first; held <= limit+limit/8 {
		return nil
	}
	keep := n.meta.seq + 1 - limit // the first change to stay
	txn := c.store.db.Begin()
	defer txn.Discard()
	keys, err := c.store.keys(appendPrefix(nil, n.number, kindLog), appendLogKey(nil, n.number, n.meta.first), trimBatch)
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
		m.first = last + 1
	}
	if m == n.meta {
		return nil
	}
	return n.putMeta(txn, m)
}
