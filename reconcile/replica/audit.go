package replica

import (
	"context"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// Drift is how much of a live state is not what the records say.
type Drift struct {
	Ranges int // whose sums are wrong
	Cells  int
	// Estimator: its marks are wrong.
	Estimator bool
}

// Any reports whether there is drift.
func (d Drift) Any() bool { return d != Drift{} }

// Plus is what has drifted of two sets.
func (d Drift) Plus(of Drift) Drift {
	return Drift{d.Ranges + of.Ranges, d.Cells + of.Cells, d.Estimator || of.Estimator}
}

// String says what has drifted.
func (d Drift) String() string {
	s := fmt.Sprintf("the sums of %d ranges and %d cells of the sketch", d.Ranges, d.Cells)
	if d.Estimator {
		s += ", and the estimator"
	}
	return s
}

// Audit computes the state anew by a scan, compares it with what is kept, and
// replaces what has drifted. Commits go on meanwhile; ErrBusy says that there were
// too many, or that the sketch has grown: the next audit tells. Snapshots that are
// open keep what they have. tick is as in Snapshot.
func (l *Live) Audit(ctx context.Context, ns dbadapter.Namespace, tick func() error) (d Drift, err error) {
	m := l.mark()
	defer l.release(m)
	snap, err := ns.Snapshot()
	if err != nil {
		return d, err
	}
	defer snap.Close()
	ranges, err := scanRanges(ctx, snap, tick)
	if err != nil {
		return d, err
	}
	sketch, err := l.scanCells(ctx, snap, l.Cells(), tick)
	if err != nil {
		return d, err
	}
	seq := snap.Seq()
	l.mu.Lock()
	defer l.mu.Unlock()
	since, err := l.undo.move(m, seq)
	if err != nil {
		return d, err
	}
	for i := range since {
		c := &since[i]
		follow(sketch, ranges, &dbadapter.Change{Index: c.index, Old: c.old, New: c.new, Delta: c.delta, Records: c.records})
	}
	if l.sketch.Len() != sketch.Len() {
		return d, fmt.Errorf("%w: the sketch has grown", reconcile.ErrBusy)
	}
	for r := range dbadapter.Range(dbadapter.Ranges) {
		if l.ranges.Of(r, r+1) != ranges.Of(r, r+1) {
			d.Ranges++
		}
	}
	kept, anew := l.sketch.Prefix(sketch.Len()), sketch.Prefix(sketch.Len())
	for i := range anew {
		if kept[i] != anew[i] {
			d.Cells++
		}
	}
	d.Estimator = !slices.Equal(l.sketch.Estimator(), sketch.Estimator())
	if d.Any() {
		l.sketch, l.ranges = sketch, ranges
		l.repairs++
		l.audited = l.repairs
	}
	return d, nil
}

// Drifted is how often something that is kept was found wrong, and replaced.
func (l *Live) Drifted() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.repairs
}
