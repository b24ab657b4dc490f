package replica

import (
	"context"
	"fmt"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/rangesum"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Live is the live sketch of a namespace, brought up to date with each commit. It has
// the first cells of the namespace's sequence, and for each range the sum of its
// records' digests and their number. It must be told of every commit, in order. Its
// methods may be called from several goroutines.
type Live struct {
	keys reconcile.Keys

	// mu guards everything below. It is the last lock, since a store calls Observe with
	// its own locks held. So the store is never called with mu held, not even to close
	// a snapshot. TestLockOrder checks that.
	mu     sync.Mutex
	sketch *rateless.Sketch
	ranges *rangesum.Table
	undo   undoLog
	// repairs counts how often something was found wrong, and replaced. repaired has the number of the last
	// time for each range, and audited that of the last time for all.
	repairs, audited uint64
	repaired         map[dbadapter.Range]uint64
}

// New is the live sketch of an empty namespace at sequence number 0.
func New(keys reconcile.Keys) *Live {
	return &Live{
		keys:   keys,
		sketch: rateless.NewSketch(keys.Cells, liveCells(0)),
		ranges: &rangesum.Table{},
		undo:   undoLog{bound: maxUndo, marks: map[*mark]struct{}{}},
	}
}

// Load replaces the state by a scan of the store's snapshot, for start-up. No commit
// may run meanwhile; the snapshots of before are of no use any longer. tick is as in
// Snapshot.
func (l *Live) Load(ctx context.Context, snap dbadapter.Snapshot, tick func() error) error {
	ranges, err := scanRanges(ctx, snap, tick)
	if err != nil {
		return err
	}
	sketch, err := l.scanCells(ctx, snap, liveCells(ranges.Total().Records), tick)
	if err != nil {
		return err
	}
	seq := snap.Seq()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sketch, l.ranges = sketch, ranges
	l.undo.restart(seq)
	return nil
}

func scanRanges(ctx context.Context, snap dbadapter.Snapshot, tick func() error) (*rangesum.Table, error) {
	ranges := &rangesum.Table{}
	for r, err := range ticking(tick, snap.Scan(ctx, nil, nil)) {
		if err != nil {
			return nil, fmt.Errorf("rebuilding the digests: %w", err)
		}
		ranges.Add(r.Index, dbadapter.Sum{Records: 1, Digest: r.Digest})
	}
	return ranges, nil
}

func (l *Live) scanCells(ctx context.Context, snap dbadapter.Snapshot, cells int, tick func() error) (*rateless.Sketch, error) {
	sketch := rateless.NewSketch(l.keys.Cells, cells)
	if err := sketch.AddAll(coded.Pairs(ticking(tick, snap.Pairs(ctx, 0, 0)))); err != nil {
		return nil, fmt.Errorf("rebuilding the sketch: %w", err)
	}
	return sketch, nil
}

// Observe follows one commit. Its signature is that of the store's observer.
func (l *Live) Observe(changes []dbadapter.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range changes {
		c := &changes[i]
		follow(l.sketch, l.ranges, c)
		l.undo.add(c)
	}
	l.undo.trim()
}

// follow brings a sketch and the sums of the ranges up to date with a change.
func follow(sketch *rateless.Sketch, ranges *rangesum.Table, c *dbadapter.Change) {
	sketch.Replace(coded.Pair(c.Index, c.Old), coded.Pair(c.Index, c.New))
	ranges.Add(c.Index, dbadapter.Sum{Records: uint64(c.Records), Digest: c.Delta})
}

// State is the digest, the number of records and the sequence number as of the
// last commit.
func (l *Live) State() (digest dbadapter.Digest, records, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := l.ranges.Total()
	return total.Digest, total.Records, l.undo.seq
}

// holds is how many records lie in the ranges of a span.
func (l *Live) holds(span wire.Span) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ranges.Of(span.All()).Records
}

// Cells is the length of the live sketch.
func (l *Live) Cells() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sketch.Len()
}

// Grow lengthens the live sketch to what the number of records asks for, by
// a scan of a snapshot while commits go on. It reports whether it did. ErrBusy
// says that too much was written meanwhile. tick is as in Snapshot.
func (l *Live) Grow(ctx context.Context, ns dbadapter.Namespace, tick func() error) (bool, error) {
	from, to, m := l.short()
	defer l.release(m)
	if to <= from {
		return false, nil
	}
	snap, err := ns.Snapshot()
	if err != nil {
		return false, err
	}
	defer snap.Close()
	seq := snap.Seq()
	tail := rateless.NewWindow(l.keys.Cells, from, to)
	if err := tail.AddAll(coded.Pairs(ticking(tick, snap.Pairs(ctx, 0, 0)))); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	since, err := l.undo.move(m, seq)
	if err != nil {
		return false, err
	}
	for _, c := range since {
		tail.Replace(coded.Pair(c.index, c.old), coded.Pair(c.index, c.new))
	}
	if l.sketch.Len() != from {
		return false, nil // another call was faster
	}
	l.sketch.Append(tail)
	return true, nil
}

// short is the length of the live sketch, the length it should have, and a mark
// in the undo log as of now.
func (l *Live) short() (from, to int, m *mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sketch.Len(), liveCells(l.ranges.Total().Records), l.undo.mark()
}

// mark is a mark in the undo log as of now.
func (l *Live) mark() *mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.undo.mark()
}

// release takes the mark out of the undo log. Idempotent.
func (l *Live) release(m *mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undo.release(m)
}
