package rateless

import (
	"fmt"
	"slices"
)

// Restore returns the sketch that has these first cells and this estimator, as
// Prefix and Estimator gave them under the same key. It continues a set that was
// sketched before. ErrCell: a cell is not reduced, or the estimator has another
// size.
func Restore(key Key, cells []Cell, e Estimator) (*Sketch, error) {
	if len(e) != EstimatorSize {
		return nil, fmt.Errorf("restore a sketch: its estimator has %d bytes, not %d: %w", len(e), EstimatorSize, ErrCell)
	}
	s := NewWindow(key, 0, len(cells))
	s.estimator = slices.Clone(e)
	for i := range cells {
		if !cells[i].inRange() {
			return nil, fmt.Errorf("restore a sketch: cell %d is out of range: %w", i, ErrCell)
		}
		s.cells.at[i] = sumOf(&cells[i])
	}
	s.cells.terms = 1
	return s, nil
}
