package reconcile

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// The step subtract: the responder takes its own cells from the initiator's.
// The decoder asks for them, cell range by cell range, and does the subtraction.

// subtrahend is the responder as the source of its own cells.
type subtrahend responder

// Cells implements rateless.Source.
func (b *subtrahend) Cells(from, to int) ([]rateless.Cell, error) {
	defer b.link.in(StepSubtract)()
	return b.replica.Cells(from, to)
}

// lookup finds the own checksums under indices, a part at a time: of a large
// decode there are millions.
func (b *subtrahend) lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error {
	for from := 0; from < len(indices); from += lookups {
		if err := b.link.tick(); err != nil {
			return err
		}
		to := min(from+lookups, len(indices))
		if err := b.replica.Lookup(indices[from:to], sums[from:to]); err != nil {
			return err
		}
	}
	return nil
}
