package memdb

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// snapshot is the roots as of one commit.
type snapshot struct {
	namespace *namespace
	records   tree[string, *commit.Held]
	buckets   tree[dbadapter.Index, []commit.Held]
	seq       uint64
	closed    bool
}

// usable reports that neither the snapshot nor its namespace is closed.
func (s *snapshot) usable(what string) error {
	if s.closed {
		return fmt.Errorf("%s: the snapshot is %w", what, dbadapter.ErrClosed)
	}
	if s.namespace.closed.Load() {
		return s.namespace.errClosed(what)
	}
	return nil
}

// running reports why a scan must end, if it must.
func (s *snapshot) running(ctx context.Context, what string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.usable(what)
}

func (s *snapshot) Seq() uint64 { return s.seq }

func (s *snapshot) Get(key []byte) (dbadapter.Record, error) {
	if err := s.usable("get"); err != nil {
		return dbadapter.Record{}, err
	}
	held, ok := s.records.get(string(key))
	if !ok {
		return dbadapter.Record{}, fmt.Errorf("get %q: %w", key, dbadapter.ErrNotFound)
	}
	return held.Record.Record.Clone(), nil
}

func (s *snapshot) Scan(ctx context.Context, prefix, after []byte) iter.Seq2[dbadapter.Hashed, error] {
	return seq.Of(func(yield func(dbadapter.Hashed) bool) (err error) {
		if err := s.usable("scan"); err != nil {
			return err
		}
		start := string(prefix)
		if next := string(after) + "\x00"; after != nil && next > start {
			start = next
		}
		s.records.from(start, func(key string, held *commit.Held) bool {
			if !strings.HasPrefix(key, string(prefix)) {
				return false
			}
			err = s.running(ctx, "scan")
			return err == nil && yield(held.Record.Clone())
		})
		return err
	})
}

func (s *snapshot) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	if err := s.usable("look up"); err != nil {
		return err
	}
	for i, index := range indices {
		held, _ := s.buckets.get(index)
		sums[i] = commit.Checksum(s.namespace.hasher, held)
	}
	return nil
}

func (s *snapshot) Bucket(index dbadapter.Index) ([]dbadapter.Hashed, error) {
	if err := s.usable("read a bucket"); err != nil {
		return nil, err
	}
	held, _ := s.buckets.get(index)
	var records []dbadapter.Hashed
	for i := range held {
		records = append(records, held[i].Record.Clone())
	}
	return records, nil
}

func (s *snapshot) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	buckets := make([][]dbadapter.Hashed, len(indices))
	for i, index := range indices {
		var err error
		if buckets[i], err = s.Bucket(index); err != nil {
			return nil, err
		}
	}
	return buckets, nil
}

func (s *snapshot) Pairs(ctx context.Context, from, to dbadapter.Index) iter.Seq2[dbadapter.Pair, error] {
	return seq.Of(func(yield func(dbadapter.Pair) bool) (err error) {
		if err := s.usable("list the pairs"); err != nil {
			return err
		}
		s.buckets.from(from, func(index dbadapter.Index, held []commit.Held) bool {
			if to != 0 && index >= to {
				return false
			}
			err = s.running(ctx, "list the pairs")
			return err == nil && yield(dbadapter.Pair{Index: index, Checksum: commit.Checksum(s.namespace.hasher, held)})
		})
		return err
	})
}

func (s *snapshot) Close() error {
	s.closed = true
	return nil
}
