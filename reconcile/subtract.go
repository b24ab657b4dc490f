package reconcile

import (
	"math"

	"github.com/syncd-io/syncd/iblt"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step subtract: the responder takes its own cells off the initiator's,
// as many as are needed for the peel to end.

// differ finds the differences by cells. ok is false where they are too many
// for that.
func (b *responder) differ() (found []iblt.Difference, ok bool, err error) {
	defer b.replica.Decoded()
	d := iblt.NewDecoder(b.replica.Key(), (*subtrahend)(b), b.replica.Lookup)
	d.AddProbes(b.there.Probes, b.replica.Probes())
	if err := d.AddCells(b.there.Cells); err != nil {
		return nil, false, err
	}
	for !d.Done() {
		ask := b.ask(d)
		if ask == 0 {
			return nil, false, nil
		}
		if err := b.link.send(&wire.More{Cells: uint64(ask)}); err != nil {
			return nil, false, err
		}
		b.link.report.Rounds++
		for ask > 0 {
			m, err := b.link.receive()
			if err != nil {
				return nil, false, err
			}
			c, isCells := m.(*wire.Cells)
			if !isCells {
				return nil, false, unexpected(m)
			}
			if len(c.Cells) == 0 || len(c.Cells) > ask {
				return nil, false, violation("%d cells where %d were asked for", len(c.Cells), ask)
			}
			ask -= len(c.Cells)
			if err := d.AddCells(c.Cells); err != nil {
				return nil, false, err
			}
		}
	}
	return d.Differences(), true, nil
}

// subtrahend is the responder as the source of its own cells: reading them is
// the step subtract, and what the decoder does with them the step peel.
type subtrahend responder

// Cells implements iblt.Source.
func (b *subtrahend) Cells(from, to int) ([]iblt.Cell, error) {
	b.opts.enter(StepSubtract)
	defer b.opts.enter(StepPeel)
	return b.replica.Cells(from, to)
}

// ask is how many cells to ask for next; 0 means that there will be no end.
//
// Before the first burst the probes tell the number of differences d to
// within 17 %; the burst aims below it, since cells that were not needed
// cannot be given back. From then on the cells themselves tell d to within a
// few percent, and the next burst aims just above what it should take.
func (b *responder) ask(d *iblt.Decoder) int {
	have := d.Cells()
	aim := 0
	if have <= len(b.there.Cells) {
		guess, sure := iblt.Estimate(b.there.Probes, b.replica.Probes())
		// No more can differ than both sides hold, nor fewer than their
		// numbers differ by.
		here, there := float64(b.replica.Records()), float64(b.there.Records)
		guess = min(max(guess, math.Abs(here-there)), here+there)
		b.link.report.Estimate = int64(math.Round(guess))
		aim = cellsFor(firstAim * guess)
		if !sure {
			aim = cellsFor(guess)
		}
	} else {
		aim = cellsFor(nextAim * d.Estimate())
	}
	least := max(minBurst, have/stepDown)
	if twins(d) {
		least = max(have/2, min(8*have, twinCells))
	}
	n := min(max(aim-have, least), burst, MaxCells-have)
	return max(n, 0)
}

// twins reports whether the cells should have been enough, and most pairs did
// come out: a few hide behind one another, having every cell in common so far.
// At cell i a pair shows in about one cell of i, so that only many times the
// cells will part them.
func twins(d *iblt.Decoder) bool {
	all, found := d.Estimate(), float64(len(d.Differences()))
	return 1.25*float64(cellsFor(all)) < float64(d.Cells()) && found >= 0.7*all
}

// How far bursts aim. Measured at 1,000 to 20,000 differences: see
// docs/PERFORMANCE.md.
const (
	firstAim = 0.88
	nextAim  = 1.03
	minBurst = 16
	// stepDown bounds the rounds where the aim was too low: each further
	// burst adds at least a 24th.
	stepDown = 24
	// twinCells is 16 KiB. Of 40 differences 128 cells leave twins in 8 of
	// 10,000 syncs; two of the class that is rarest in later cells stay
	// together until cell x with probability (128/x)^2.4, 0.5 % here.
	twinCells = 1024
)

// cellsFor is the mean number of cells that decode d differences, a fit of
// the measured curve: 1.46, 1.28, 1.19, 1.13 cells a difference at d = 64,
// 256, 1,000 and 10,000.
func cellsFor(d float64) int {
	return int(math.Ceil(1.10*d + 2.9*math.Sqrt(d)))
}
