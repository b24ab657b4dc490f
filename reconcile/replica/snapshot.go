package replica

import (
	"context"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/rangesum"
	"github.com/syncd-io/syncd/reconcile"
)

// Snapshot is a replica of a whole namespace as of one commit. Its cells are the live
// ones, taken back behind the commits made since. With a cell or a checksum read live,
// no decode would end once a key has been rewritten. Its methods may be called from one
// goroutine at a time.
type Snapshot struct {
	ctx       context.Context // the sync's; a replica's methods are steps of it
	live      *Live
	mark      *mark
	tick      func() error
	store     dbadapter.Snapshot
	ranges    *rangesum.Table
	repairs   uint64 // of the live sketch, as of ranges
	estimator rateless.Estimator
	// beyond holds the cells past the live ones, made by a scan.
	beyond *rateless.Sketch
}

var _ reconcile.Replica = (*Snapshot)(nil)

// Snapshot opens a replica of ns, the namespace that l follows, as of now. It
// must be closed.
//
// Its scans end when the context does. If tick is not nil, they call it every 64
// records, so that the caller can tell its peer that it works. They end with the error
// that tick returns.
func (l *Live) Snapshot(ctx context.Context, ns dbadapter.Namespace, tick func() error) (*Snapshot, error) {
	// First the mark, then the store's snapshot: it can only be newer, since a
	// store shows a commit to observers and snapshots in one step.
	s := &Snapshot{ctx: ctx, live: l, mark: l.mark(), tick: tick}
	var err error
	if s.store, err = ns.Snapshot(); err != nil {
		l.release(s.mark)
		return nil, err
	}
	if err := s.rewind(); err != nil {
		s.Close() // it was only opened
		return nil, err
	}
	return s, nil
}

// rewind moves the mark to the store's snapshot, and computes the sums of the
// ranges as of then.
func (s *Snapshot) rewind() error {
	seq := s.store.Seq()
	l := s.live
	l.mu.Lock()
	defer l.mu.Unlock()
	since, err := l.undo.move(s.mark, seq)
	if err != nil {
		return err
	}
	s.ranges, s.repairs, s.estimator = l.ranges.Share(), l.repairs, l.sketch.Estimator()
	for i := range since {
		c := &since[i]
		s.ranges.Sub(c.index, dbadapter.Sum{Records: uint64(c.records), Digest: c.delta})
	}
	return nil
}

// Close releases what the snapshot holds. Idempotent.
func (s *Snapshot) Close() error {
	s.live.release(s.mark)
	return s.store.Close()
}

// Sum implements reconcile.Replica.
func (s *Snapshot) Sum() dbadapter.Sum { return s.ranges.Total() }

// Ranges implements reconcile.Replica.
func (s *Snapshot) Ranges(from, to dbadapter.Range) dbadapter.Sum { return s.ranges.Of(from, to) }

// Estimator implements reconcile.Replica. It may be some commits newer than the
// snapshot: an estimate bears that.
func (s *Snapshot) Estimator() rateless.Estimator { return s.estimator }

// Cells implements reconcile.Replica. It fails with ErrBusy if so much has been
// written since the snapshot was opened that it was dropped.
func (s *Snapshot) Cells(from, to int) ([]rateless.Cell, error) {
	cells, end, err := s.rewound(from, to)
	if err != nil || to <= end {
		return cells, err
	}
	tail, err := s.scanned(max(from, end), to)
	return append(cells, tail...), err
}

// rewound returns those of the cells [from, to) that the live sketch has, as
// they were, and the number of its cells.
func (s *Snapshot) rewound(from, to int) (cells []rateless.Cell, end int, err error) {
	window, since, end, err := s.copied(from, to)
	if window == nil || err != nil {
		return nil, end, err
	}
	for i := len(since) - 1; i >= 0; i-- {
		c := &since[i]
		window.Replace(coded.Pair(c.index, c.new), coded.Pair(c.index, c.old))
	}
	cells, err = window.Cells(from, from+window.Len())
	return cells, end, err
}

// copied returns a copy of those of the cells [from, to) that the live sketch has, and
// the changes since the snapshot was opened. The copy is nil if it has none of them.
func (s *Snapshot) copied(from, to int) (window *rateless.Sketch, since []change, end int, err error) {
	l := s.live
	l.mu.Lock()
	defer l.mu.Unlock()
	end = l.sketch.Len()
	if from >= end {
		return nil, nil, end, nil
	}
	if since, err = l.undo.since(s.mark); err != nil {
		return nil, nil, end, err
	}
	return l.sketch.Window(from, min(to, end)), since, end, nil
}

// scanned returns cells beyond the live ones. A scan makes many at once, so
// that few scans serve a long stream.
func (s *Snapshot) scanned(from, to int) ([]rateless.Cell, error) {
	b := s.beyond
	if b == nil || from < b.From() || to > b.From()+b.Len() {
		b = rateless.NewWindow(s.live.keys.Cells, from, max(to, min(4*from, reconcile.MaxCells)))
		if err := b.AddAll(coded.Pairs(ticking(s.tick, s.store.Pairs(s.ctx, 0, 0)))); err != nil {
			return nil, err
		}
		s.beyond = b
	}
	return b.Cells(from, to)
}

// Decoded implements reconcile.Replica: what only cells need is released.
func (s *Snapshot) Decoded() {
	s.live.release(s.mark)
	s.beyond = nil
}

// Lookup implements reconcile.Replica.
func (s *Snapshot) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	return s.store.Lookup(indices, sums)
}

// Buckets implements reconcile.Replica.
func (s *Snapshot) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	return s.store.Buckets(indices)
}

// All implements reconcile.Replica.
func (s *Snapshot) All() iter.Seq2[dbadapter.Hashed, error] {
	return ticking(s.tick, s.store.Scan(s.ctx, nil, nil))
}
