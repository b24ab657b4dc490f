package reconcile

import (
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step peel: the responder takes the differences out of the cells, one by one,
// until all cells are zero. While they are not, it asks for further cells.

// differ finds the differences by cells. ok is false where they are too many
// for that. Where the cells come to no end, b.stuck is set: what was found may then be
// incomplete or wrong.
func (b *responder) differ() (found []coded.Difference, ok bool, err error) {
	defer b.link.in(StepPeel)()
	defer b.replica.Decoded()
	own := (*subtrahend)(b)
	d := rateless.NewSourceDecoder(b.opts.Keys.Cells, own, coded.Lookup(own.lookup))
	b.estimate(d, b.hello.Estimator)
	if err := b.peel(d, b.hello.Cells); err != nil {
		return nil, false, err
	}
	if len(b.hello.Cells) == 0 { // of a part: its estimator comes with the first cells
		if err := b.more(d, FirstCells); err != nil {
			return nil, false, err
		}
	}
	for !d.Done() && !b.stuck {
		ask := b.ask(d)
		if b.stuck {
			break
		}
		if ask == 0 || b.many() {
			return nil, false, nil
		}
		if err := b.expectMore(); err != nil {
			return nil, false, err
		}
		if err := b.more(d, ask); err != nil {
			return nil, false, err
		}
	}
	return coded.Differences(d.Differences()), true, nil
}

// estimate lets the decoder judge by the initiator's estimator, if there is one.
func (b *responder) estimate(d *rateless.Decoder, theirs rateless.Estimator) {
	b.fresh, b.estimated = true, len(theirs) > 0
	if b.estimated {
		d.AddEstimators(theirs, b.replica.Estimator())
	}
}

// peel hands cells to the decoder. Where it gives up, the ranges decide: the cells of
// this side may have been kept wrong.
func (b *responder) peel(d *rateless.Decoder, cells []rateless.Cell) error {
	err := d.AddCells(cells)
	switch {
	case errors.Is(err, rateless.ErrForged):
		b.stuck = true
	case errors.Is(err, rateless.ErrCell):
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	case err != nil:
		return err
	}
	return b.link.tick()
}

// expectMore lets the node decide whether further cells may travel. Without the initiator's
// estimator, which comes with the next ones, nothing is known yet.
func (b *responder) expectMore() error {
	if b.hello.DryRun || !b.estimated {
		return nil
	}
	return b.expect(b.link.report.Estimate)
}

// more asks for further cells and takes them.
func (b *responder) more(d *rateless.Decoder, ask int) error {
	if err := b.link.reserve(cellBytes * int64(ask)); err != nil {
		return err
	}
	if err := b.link.send(&wire.More{Cells: uint64(ask)}); err != nil {
		return err
	}
	b.link.report.Rounds++
	for ask > 0 {
		c, err := due[*wire.Cells](b.link)
		if err != nil {
			return err
		}
		if len(c.Cells) != min(ask, wire.MaxCells) { // dripped, each would cost a look behind all writes since
			return violation("%d cells in a frame where %d were asked for", len(c.Cells), ask)
		}
		if len(c.Estimator) > 0 {
			if b.estimated {
				return violation("a second estimator")
			}
			b.estimate(d, c.Estimator)
		}
		ask -= len(c.Cells)
		if err := b.peel(d, c.Cells); err != nil {
			return err
		}
	}
	return nil
}
