package memdb

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/RaduBerinde/btreemap"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// snapshot is the trees as of one commit.
type snapshot struct {
	namespace *namespace
	records   *btreemap.BTreeMap[string, *commit.Held]
	buckets   *buckets
	seq       uint64
	closed    atomic.Bool // by Close, or by that of the namespace
}

// usable reports that the snapshot is not closed.
func (s *snapshot) usable(what string) error {
	if s.closed.Load() {
		return fmt.Errorf("%s: the snapshot is %w", what, dbadapter.ErrClosed)
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
	_, held, ok := s.records.Get(string(key))
	if !ok {
		return dbadapter.Record{}, fmt.Errorf("get %q: %w", key, dbadapter.ErrNotFound)
	}
	return held.Record.Record.Clone(), nil
}

func (s *snapshot) Scan(ctx context.Context, prefix, after []byte) iter.Seq2[dbadapter.Hashed, error] {
	return seq.Of(func(yield func(dbadapter.Hashed) bool) error {
		if err := s.usable("scan"); err != nil {
			return err
		}
		start := string(prefix)
		if next := string(after) + "\x00"; after != nil && next > start {
			start = next
		}
		for key, held := range s.records.Ascend(btreemap.GE(start), btreemap.Max[string]()) {
			if !strings.HasPrefix(key, string(prefix)) {
				return nil
			}
			if err := s.running(ctx, "scan"); err != nil || !yield(held.Record.Clone()) {
				return err
			}
		}
		return nil
	})
}

func (s *snapshot) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	if err := s.usable("look up"); err != nil {
		return err
	}
	for i, l := range held(s.buckets, indices) {
		sums[i] = commit.Checksum(s.namespace.Hasher, l.Held)
	}
	return nil
}

func (s *snapshot) Bucket(index dbadapter.Index) ([]dbadapter.Hashed, error) {
	buckets, err := s.Buckets([]dbadapter.Index{index})
	if err != nil {
		return nil, err
	}
	for i := range buckets[0] {
		buckets[0][i] = buckets[0][i].Clone()
	}
	return buckets[0], nil
}

func (s *snapshot) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	if err := s.usable("read buckets"); err != nil {
		return nil, err
	}
	return grouped.Records(held(s.buckets, indices))
}

func (s *snapshot) Pairs(ctx context.Context, from, to dbadapter.Index) iter.Seq2[dbadapter.Pair, error] {
	return seq.Of(func(yield func(dbadapter.Pair) bool) error {
		if err := s.usable("list the pairs"); err != nil {
			return err
		}
		end := btreemap.LT(to)
		if to == 0 {
			end = btreemap.Max[dbadapter.Index]()
		}
		for index, held := range s.buckets.Ascend(btreemap.GE(from), end) {
			pair := dbadapter.Pair{Index: index, Checksum: commit.Checksum(s.namespace.Hasher, held)}
			if err := s.running(ctx, "list the pairs"); err != nil || !yield(pair) {
				return err
			}
		}
		return nil
	})
}

func (s *snapshot) Close() error {
	s.namespace.Life.Closed(s)
	s.closed.Store(true)
	return nil
}
