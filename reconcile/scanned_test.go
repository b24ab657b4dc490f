package reconcile

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/rangesum"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// scanned is the plain replica of a store: it holds a snapshot, and computes
// the rest from a scan of it. Package replica has the ones that do not scan.
type scanned struct {
	dbadapter.Snapshot
	keys   Keys
	prefix []byte
	span   wire.Span
	ranges rangesum.Table
	sums   map[dbadapter.Index]dbadapter.Checksum
	sketch *rateless.Sketch
}

var _ Replica = (*scanned)(nil)

func scan(snap dbadapter.Snapshot, keys Keys, prefix []byte, span wire.Span) (*scanned, error) {
	s := &scanned{Snapshot: snap, keys: keys, prefix: prefix, span: span, sums: map[dbadapter.Index]dbadapter.Checksum{}}
	buckets := map[dbadapter.Index]dbadapter.Bucket{}
	for r, err := range s.All(nil) {
		if err != nil {
			return nil, err
		}
		b := buckets[r.Index]
		b.Add(&r)
		buckets[r.Index] = b
		s.ranges.Add(r.Index, dbadapter.Sum{Records: 1, Digest: r.Digest})
		s.sums[r.Index] = b.Pair(keys.Hasher).Checksum
	}
	s.extend(256)
	return s, nil
}

func (s *scanned) extend(cells int) {
	s.sketch = rateless.NewSketch(s.keys.Cells, cells)
	for i, sum := range s.sums {
		s.sketch.Add(coded.Pair(i, sum))
	}
}

func (s *scanned) Records() uint64                               { return s.ranges.Total().Records }
func (s *scanned) Digest() dbadapter.Digest                      { return s.ranges.Total().Digest }
func (s *scanned) Ranges(from, to dbadapter.Range) dbadapter.Sum { return s.ranges.Of(from, to) }
func (s *scanned) Decoded()                                      {}
func (s *scanned) Estimator() rateless.Estimator                 { return s.sketch.Estimator() }

func (s *scanned) Cells(from, to int) ([]rateless.Cell, error) {
	if to > s.sketch.Len() {
		s.extend(min(4*to, MaxCells))
	}
	return s.sketch.Cells(from, to)
}

func (s *scanned) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	for n, i := range indices {
		sums[n] = s.sums[i]
	}
	return nil
}

func (s *scanned) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	all, err := s.Snapshot.Buckets(indices)
	for n := range all {
		all[n] = slices.DeleteFunc(all[n], func(r dbadapter.Hashed) bool { return !bytes.HasPrefix(r.Key, s.prefix) || !s.span.Holds(r.Index) })
	}
	return all, err
}

func (s *scanned) List(ranges []dbadapter.Range) iter.Seq2[Listed, error] {
	return listed(s.All(nil), ranges)
}
func (s *scanned) Repair(r dbadapter.Range, sum dbadapter.Sum) { s.ranges.Set(r, sum) }

func (s *scanned) All(behind []byte) iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		for r, err := range s.Scan(context.Background(), s.prefix, behind) {
			if (err != nil || s.span.Holds(r.Index)) && !yield(r, err) {
				return
			}
		}
	}
}
