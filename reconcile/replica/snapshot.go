package replica

import (
	"context"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile"
)

// Snapshot is a replica of a whole namespace as of one commit. Its cells are the
// live ones, taken back behind the commits that came since: with a cell or a
// checksum read live, no decode would end once a key has been rewritten.
type Snapshot struct {
	ctx       context.Context // the sync's; a replica's methods are steps of it
	live      *Live
	tick      func() error
	store     dbadapter.Snapshot
	digest    dbadapter.Digest
	records   uint64
	estimator rateless.Estimator
	// beyond holds the cells past the live ones, made by a scan.
	beyond *rateless.Sketch
}

var _ reconcile.Replica = (*Snapshot)(nil)

// Snapshot opens a replica of ns, the namespace that l follows, as of now. It
// must be closed. Its scans end with the context; they call tick, if it is not
// nil, at least every tickEvery records, and end with the error it returns.
func (l *Live) Snapshot(ctx context.Context, ns dbadapter.Namespace, tick func() error) (*Snapshot, error) {
	s := &Snapshot{ctx: ctx, live: l, tick: tick}
	// First hold the changes, then open the snapshot: it can only be newer,
	// since a store tells observers and snapshots of a commit in one step.
	l.hold(s)
	store, err := ns.Snapshot()
	if err != nil {
		l.release(s)
		return nil, err
	}
	s.store = store
	l.mu.Lock()
	defer l.mu.Unlock()
	since, err := l.since(store.Seq())
	if err != nil {
		delete(l.snapshots, s)
		l.trim()
		store.Close()
		return nil, err
	}
	s.digest, s.records = l.digest, l.records
	for _, c := range since {
		s.digest = s.digest.Sub(c.delta)
		s.records -= uint64(c.records)
	}
	s.estimator = l.sketch.Estimator()
	l.snapshots[s] = store.Seq()
	l.trim()
	return s, nil
}

// Close releases the snapshot. Idempotent.
func (s *Snapshot) Close() error {
	s.live.release(s)
	return s.store.Close()
}

// Records implements reconcile.Replica.
func (s *Snapshot) Records() uint64 { return s.records }

// Digest implements reconcile.Replica.
func (s *Snapshot) Digest() dbadapter.Digest { return s.digest }

// Estimator implements reconcile.Replica. It may be some commits newer than the snapshot:
// an estimate bears that.
func (s *Snapshot) Estimator() rateless.Estimator { return s.estimator }

// Cells implements reconcile.Replica.
func (s *Snapshot) Cells(from, to int) ([]rateless.Cell, error) {
	s.live.mu.Lock()
	end := s.live.sketch.Len()
	var live *rateless.Sketch
	var since []undone
	var err error
	if from < end {
		live = s.live.sketch.Window(from, min(to, end))
		since, err = s.live.since(s.store.Seq())
	}
	s.live.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var cells []rateless.Cell
	if live != nil {
		for i := len(since) - 1; i >= 0; i-- {
			c := &since[i]
			live.Replace(coded.Pair(c.index, c.new), coded.Pair(c.index, c.old))
		}
		if cells, err = live.Cells(live.From(), live.From()+live.Len()); err != nil {
			return nil, err
		}
	}
	if to <= end {
		return cells, nil
	}
	tail, err := s.scanned(max(from, end), to)
	return append(cells, tail...), err
}

// scanned returns cells beyond the live ones. A scan makes many at once, so
// that few scans serve a long stream.
func (s *Snapshot) scanned(from, to int) ([]rateless.Cell, error) {
	b := s.beyond
	if b == nil || from < b.From() || to > b.From()+b.Len() {
		b = rateless.NewWindow(s.live.keys.Cells, from, max(to, min(4*from, reconcile.MaxCells)))
		if err := b.AddAll(coded.Pairs(ticking(s.tick, s.store.Pairs(s.ctx)))); err != nil {
			return nil, err
		}
		s.beyond = b
	}
	return b.Cells(from, to)
}

// Decoded implements reconcile.Replica: changes need not be held for it any longer.
func (s *Snapshot) Decoded() {
	s.live.release(s)
	s.beyond = nil
}

// Lookup implements reconcile.Replica.
func (s *Snapshot) Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	return s.store.Lookup(indices, sums)
}

// Bucket implements reconcile.Replica.
func (s *Snapshot) Bucket(index dbadapter.Index) ([]dbadapter.Record, error) {
	held, err := s.store.Bucket(index)
	var records []dbadapter.Record
	for i := range held {
		records = append(records, held[i].Record)
	}
	return records, err
}

// All implements reconcile.Replica.
func (s *Snapshot) All() iter.Seq2[dbadapter.Record, error] {
	return plain(ticking(s.tick, s.store.Scan(s.ctx, nil, nil)))
}

// plain are the records of a scan without their hashes.
func plain(scan iter.Seq2[dbadapter.Hashed, error]) iter.Seq2[dbadapter.Record, error] {
	return func(yield func(dbadapter.Record, error) bool) {
		for r, err := range scan {
			if !yield(r.Record, err) {
				return
			}
		}
	}
}
