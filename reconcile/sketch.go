package reconcile

import (
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step sketch: the initiator says what it holds in coded cells, first as
// many as usually suffice, then those that the responder asks for.

// sketch puts the first cells and the estimator into a Hello. An empty side is
// sent everything, and needs no cells for that.
func (a *initiator) sketch(m *wire.Hello) error {
	defer a.link.in(StepSketch)()
	if m.Records == 0 || m.Method == wire.MethodAll && !m.DryRun {
		return nil
	}
	if a.later = m.Span != (wire.Span{}) || a.opts.FirstCells == NoCells; a.later {
		return nil // the sums may decide, and cost no scan; the responder asks for cells if not
	}
	first := a.opts.FirstCells
	if first == 0 {
		first = FirstCells
	}
	a.cells = min(max(first, QuietCells), MaxFirstCells)
	if err := a.link.reserve(cellBytes * int64(a.cells)); err != nil {
		return err
	}
	if a.estimated = a.cells >= FirstCells; a.estimated {
		m.Estimator = a.replica.Estimator()
	}
	var err error
	m.Cells, err = a.replica.Cells(0, a.cells)
	return err
}

// sketch opens the responder's replica: of a prefix by a scan.
func (b *responder) sketch() error {
	defer b.link.in(StepSketch)()
	replica, err := b.open(b.hello)
	if err != nil {
		return err
	}
	b.read(replica)
	return nil
}

// cellsAsked answers a request for further cells.
func (a *initiator) cellsAsked(m *wire.More) error {
	defer a.link.in(StepSketch)()
	if a.link.report.Rounds > maxRounds {
		return violation("cells asked for %d times", a.link.report.Rounds)
	}
	most := mostCells(a.here.Records, a.there.Records)
	if m.Cells == 0 || m.Cells > burst || a.cells == 0 && !a.later || a.cells+int(m.Cells) > most {
		return violation("%d more cells asked for after %d; %d are enough for the records of both sides", m.Cells, a.cells, most)
	}
	if err := a.expectCells(a.cells + int(m.Cells)); err != nil {
		return err
	}
	if err := a.link.reserve(cellBytes * int64(m.Cells)); err != nil {
		return err
	}
	a.link.report.Rounds++
	var estimator rateless.Estimator
	if !a.estimated {
		a.estimated, estimator = true, a.replica.Estimator()
	}
	for end := a.cells + int(m.Cells); a.cells < end; {
		to := min(end, a.cells+wire.MaxCells)
		cells, err := a.replica.Cells(a.cells, to)
		if err != nil {
			return err
		}
		if err := a.link.send(&wire.Cells{Estimator: estimator, Cells: cells}); err != nil {
			return err
		}
		a.cells, estimator = to, nil
	}
	return nil
}

// expectCells lets the node decide whether so many cells may travel in all. A difference
// takes up to 1.5 of them.
func (a *initiator) expectCells(cells int) error {
	if a.opts.DryRun {
		return nil
	}
	return a.expect(int64(cells) * 2 / 3)
}
