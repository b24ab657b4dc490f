package iblt

import (
	"fmt"
	"math/bits"
)

// subtable is the number of the subtable that a cell is in.
func (l *Layout) subtable(cell int32) int {
	parts := len(l.starts) - 1
	// Cells are dealt out evenly; rounding may have moved a bound by one.
	i := int(cell) * parts / l.config.Cells
	for i > 0 && int(cell) < l.starts[i] {
		i--
	}
	for int(cell) >= l.starts[i+1] {
		i++
	}
	return i
}

// Lose gives up subtable i, from 0 to Hashes − 1, as when the memory or the
// datagram that held it is gone (paper, section 3). Its cells are no longer
// read, written or marshalled. Keys keep their cells in the other subtables.
// It fails with ErrTableConfig if there is no such subtable, or if it is the
// last.
func (t *Table) Lose(i int) error {
	if t.layout.config.Placement != Subtables || i < 0 || i >= t.layout.config.Hashes {
		return fmt.Errorf("lose subtable %d: the table has no subtable of that number: %w", i, ErrTableConfig)
	}
	lost := t.lost | 1<<i
	if bits.OnesCount32(lost) == t.layout.config.Hashes {
		return fmt.Errorf("lose subtable %d: it is the last one: %w", i, ErrTableConfig)
	}
	t.lose(lost)
	return nil
}

// lose gives up a set of subtables. Lost cells are zero from then on.
func (t *Table) lose(lost uint32) {
	t.lost = lost
	for i := range t.layout.config.Hashes {
		if lost>>i&1 != 0 {
			clear(t.cells[t.layout.starts[i]:t.layout.starts[i+1]])
		}
	}
}

// isLost reports whether cell i is part of a lost subtable.
func (t *Table) isLost(i int) bool {
	return t.lost != 0 && t.lost>>t.layout.subtable(int32(i))&1 != 0
}

// Lost returns the numbers of the subtables that were lost, in order.
func (t *Table) Lost() []int {
	var all []int
	for i := range MaxHashes {
		if t.lost>>i&1 != 0 {
			all = append(all, i)
		}
	}
	return all
}

// live calls yield for each range of cells that was not lost, in order.
func (t *Table) live(yield func(from, to int) bool) {
	starts := t.layout.starts
	for i := range len(starts) - 1 {
		if t.lost>>i&1 == 0 && !yield(starts[i], starts[i+1]) {
			return
		}
	}
}

// places returns the places of a pair in subtables that were not lost.
func (t *Table) places(e *hashed, room *places) []place {
	all := t.layout.of(e, room)
	if t.lost == 0 {
		return all
	}
	kept := all[:0]
	for i, p := range all {
		if t.lost>>i&1 == 0 {
			kept = append(kept, p)
		}
	}
	return kept
}
