package replica

import (
	"context"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Span is a replica of the records in some ranges, as of one commit. Its sums are the
// kept ones; its cells take a scan of the pairs in these ranges, once they are asked
// for. Its methods may be called from one goroutine at a time.
type Span struct {
	*Snapshot
	reserve func(bytes int64) error
	span    wire.Span
	sum     dbadapter.Sum
	sketch  *rateless.Sketch // nil until it is needed, and again once the decode is over
	decoded bool
}

var _ reconcile.Replica = (*Span)(nil)

// Span opens a replica of the records of ns, the namespace that l follows, that lie in
// the ranges of a span, as of now. It must be closed. ctx and tick are as in Snapshot,
// reserve as in Prefix.
func (l *Live) Span(ctx context.Context, ns dbadapter.Namespace, span wire.Span, tick func() error, reserve func(bytes int64) error) (*Span, error) {
	s, err := l.Snapshot(ctx, ns, tick)
	if err != nil {
		return nil, err
	}
	l.release(s.mark) // the live cells are not read
	if s.tick == nil {
		s.tick = func() error { return nil }
	}
	if reserve == nil {
		reserve = func(int64) error { return nil }
	}
	return &Span{Snapshot: s, reserve: reserve, span: span, sum: s.Ranges(span.All())}, nil
}

// Sum implements reconcile.Replica.
func (s *Span) Sum() dbadapter.Sum { return s.sum }

// Ranges implements reconcile.Replica: of other ranges this replica holds nothing.
func (s *Span) Ranges(from, to dbadapter.Range) dbadapter.Sum {
	first, end := s.span.All()
	return s.Snapshot.Ranges(max(from, first), min(to, end))
}

// Estimator implements reconcile.Replica. An estimator that cannot be made is left
// out: the Cells that are asked for next fail with the reason.
func (s *Span) Estimator() rateless.Estimator {
	if s.extend(spanCells) != nil {
		return nil
	}
	return s.sketch.Estimator()
}

// Repair implements reconcile.Replica. What this replica says of other ranges is not
// what is kept of them.
func (s *Span) Repair(r dbadapter.Range, sum dbadapter.Sum) {
	if first, end := s.span.All(); first <= r && r < end {
		s.Snapshot.Repair(r, sum)
	}
}

// Cells implements reconcile.Replica.
func (s *Span) Cells(from, to int) ([]rateless.Cell, error) {
	if err := s.extend(max(to, spanCells)); err != nil {
		return nil, err
	}
	return s.sketch.Cells(from, to)
}

// extend sketches the records in that many cells, and more than were asked for if
// that takes a second scan.
func (s *Span) extend(cells int) error {
	switch {
	case s.decoded:
		return errDecoded
	case s.sketch != nil && s.sketch.Len() >= cells:
		return nil
	case s.sketch != nil:
		cells = max(cells, min(2*cells, reconcile.MaxCells))
	}
	if err := s.reserve(int64(cells) * cellBytes); err != nil {
		return err
	}
	sketch := rateless.NewSketch(s.live.keys.Cells, cells)
	from, to := s.span.Indices()
	if err := sketch.AddAll(coded.Pairs(ticking(s.tick, s.store.Pairs(s.ctx, from, to)))); err != nil {
		return err
	}
	s.sketch = sketch
	return nil
}

// Buckets implements reconcile.Replica.
func (s *Span) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	all, err := s.Snapshot.Buckets(indices)
	for n := range all {
		if !s.span.Holds(indices[n]) {
			all[n] = nil
		}
	}
	return all, err
}

// Lookup implements reconcile.Replica.
func (s *Span) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	if err := s.Snapshot.Lookup(indices, sums); err != nil {
		return err
	}
	for n, i := range indices {
		if !s.span.Holds(i) {
			sums[n] = 0
		}
	}
	return nil
}

// Decoded implements reconcile.Replica: the sketch is released.
func (s *Span) Decoded() { s.sketch, s.decoded = nil, true }

// Close releases what the replica holds. Idempotent.
func (s *Span) Close() error {
	s.Decoded()
	return s.Snapshot.Close()
}

// All implements reconcile.Replica, by index, not by key: a scan by key would read the
// whole namespace.
func (s *Span) All() iter.Seq2[dbadapter.Hashed, error] {
	return inSpan(s.ctx, s.tick, s.store, s.span, s.Buckets)
}
