package kvstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// iterate goes over the entries whose keys begin with prefix, from start on.
// step reads one or more of them and moves the iterator on; yield hands over
// what it has read. The lock is held while the database is read, and never
// while the caller runs, so that the store can be closed under an iteration,
// which then ends with ErrClosed.
func (s *snapshot) iterate(ctx context.Context, what string, prefix, start []byte, step func(kv.Iterator) error, yield func() bool) error {
	if err := s.locked(what); err != nil {
		return err
	}
	it := s.read.txn.Iterate(prefix)
	if s.iterators == nil {
		s.iterators = make(map[kv.Iterator]struct{})
	}
	s.iterators[it] = struct{}{}
	defer func() {
		// The lock is held on every way here.
		if s.read != nil {
			delete(s.iterators, it)
			it.Close()
		}
		s.mu.Unlock()
	}()
	for it.Seek(start); it.Valid(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(it); err != nil {
			return err
		}
		s.mu.Unlock()
		more := yield()
		s.mu.Lock()
		if !more {
			return nil
		}
		if s.read == nil {
			return fmt.Errorf("%s: the snapshot has been %w", what, dbadapter.ErrClosed)
		}
	}
	return it.Err()
}

// entries calls read with each entry; see iterate.
func (s *snapshot) entries(ctx context.Context, what string, prefix, start []byte, read func(kv.Iterator) error, yield func() bool) error {
	return s.iterate(ctx, what, prefix, start, func(it kv.Iterator) error {
		defer it.Next()
		return read(it)
	}, yield)
}

// A scan reads ahead, so that the buckets of several records are looked up
// together: a few at first, for a reader that stops soon.
const (
	leastAhead = 4
	mostAhead  = 256
	aheadBytes = 256 << 10
	// checkedFirst is how many records of a scan of all are compared with their
	// buckets, which takes 4 times as long as reading them. Beyond, their sum is
	// compared at the end, which costs nothing.
	checkedFirst = 4096
)

// ahead is a record that a scan has read, and why it must not be yielded.
type ahead struct {
	dbadapter.Hashed
	err error
}

func (s *snapshot) Scan(ctx context.Context, prefix, after []byte) iter.Seq2[dbadapter.Hashed, error] {
	return seq.Of(func(yield func(dbadapter.Hashed) bool) error {
		var (
			records []ahead
			size    = leastAhead
			whole   = len(prefix) == 0 && after == nil
			sum     dbadapter.Digest
			count   uint64
			more    = true
			failed  error
		)
		from := append(appendPrefix(nil, s.namespace.Number, kindRecord), prefix...)
		start := from
		if after != nil {
			next := append(append(appendPrefix(nil, s.namespace.Number, kindRecord), after...), 0)
			if bytes.Compare(next, start) > 0 {
				start = next
			}
		}
		read := func(it kv.Iterator) error {
			records = s.readAhead(it, records[:0], size)
			if !whole || count < checkedFirst {
				s.checkAhead(records)
			}
			size = min(2*size, mostAhead)
			for i := range records {
				sum, count = sum.Add(records[i].Digest), count+1
			}
			return nil
		}
		hand := func() bool {
			for i := range records {
				r := &records[i]
				if i > 0 {
					r.err = cmp.Or(s.running(ctx, "scan"), r.err)
				}
				if failed = r.err; failed != nil {
					return false
				}
				if more = yield(r.Hashed); !more {
					return false
				}
			}
			return true
		}
		err := s.iterate(ctx, "scan", from, start, read, hand)
		if err = cmp.Or(failed, err); err == nil && whole && more {
			err = s.checkSum(sum, count)
		}
		return err
	})
}

// running reports why a scan must end between two records that it has read.
func (s *snapshot) running(ctx context.Context, what string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.locked(what); err != nil {
		return err
	}
	s.mu.Unlock()
	return nil
}

// readAhead reads up to a number of records, up to the first that is damaged.
func (s *snapshot) readAhead(it kv.Iterator, records []ahead, most int) []ahead {
	n := s.namespace
	for size := 0; it.Valid() && len(records) < most && size < aheadBytes; it.Next() {
		key := bytes.Clone(it.Key())[prefixSize:]
		var r ahead
		r.err = it.Value(func(value []byte) (err error) {
			size += len(value)
			r.Hashed, err = n.decode(s.read.txn, key, bytes.Clone(value))
			return err
		})
		records = append(records, r)
		if r.err != nil {
			break
		}
	}
	return records
}

// checkAhead compares the records with their buckets. In the order of the
// indices, neighbours are found in the same blocks.
func (s *snapshot) checkAhead(records []ahead) {
	s.order = s.order[:0]
	for i := range records {
		if records[i].err == nil {
			s.order = append(s.order, i)
		}
	}
	slices.SortFunc(s.order, func(a, b int) int { return cmp.Compare(records[a].Index, records[b].Index) })
	inParallel(len(s.order), func(from, to int) {
		for _, i := range s.order[from:to] {
			r := &records[i]
			_, r.err = s.namespace.check(s.read.txn, r.Index, r.Key, &r.Hashed)
		}
	})
}

// checkSum compares all records with what the commits have added up to.
func (s *snapshot) checkSum(sum dbadapter.Digest, count uint64) error {
	m, err := s.meta("scan")
	if err == nil && (m.Digest != sum || m.Records != count) {
		err = damage.Corrupt("the records", "%d are there, %d were written; one is missing, or is not the newest of its key", count, m.Records)
	}
	return err
}

func (s *snapshot) Pairs(ctx context.Context, from, to dbadapter.Index) iter.Seq2[dbadapter.Pair, error] {
	return seq.Of(func(yield func(dbadapter.Pair) bool) error {
		number := s.namespace.Number
		if from > maxIndex {
			from, to = maxIndex, 1 // no index is so great: nothing is between the two
		}
		var pair dbadapter.Pair
		ended := false
		prefix, start := appendPrefix(nil, number, layout.KindIndex), appendIndexKey(nil, number, from)
		return s.entries(ctx, "list the pairs", prefix, start, func(it kv.Iterator) error {
			key := it.Key()
			if len(key) != prefixSize+layout.NumberSize {
				return damage.Corrupt("an index entry", "its key has %d bytes", len(key))
			}
			pair.Index = dbadapter.Index(layout.Read48(key[prefixSize:]))
			if to != 0 && pair.Index >= to {
				ended = true
				return nil
			}
			return it.Value(func(entry []byte) error {
				b, err := readBucket(entry, number, pair.Index)
				pair.Checksum = b.sum
				return err
			})
		}, func() bool { return !ended && yield(pair) })
	})
}
