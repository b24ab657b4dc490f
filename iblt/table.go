package iblt

import (
	"fmt"
	"slices"
)

// Table is the invertible Bloom lookup table of the paper: key-value pairs in a
// fixed number of cells. Any number of pairs may be in it at times. All can be
// listed when they are again fewer than some 0.8 of the cells (see
// TableConfig.Capacity). It is not safe for concurrent use.
//
// The zero Table can only be the receiver of UnmarshalBinary; NewTable returns
// one that works.
type Table struct {
	layout *Layout
	cells  []TableCell
	lost   uint32 // bit i: subtable i is lost, and its cells are zero
}

// NewTable returns an empty table, or ErrTableConfig.
func NewTable(config TableConfig) (*Table, error) {
	layout, err := NewLayout(config)
	if err != nil {
		return nil, err
	}
	return &Table{layout: layout, cells: make([]TableCell, config.Cells)}, nil
}

// Config returns the configuration, with the defaults filled in.
func (t *Table) Config() TableConfig { return t.layout.Config() }

// Insert adds the pair (x, y). It takes O(k) time and always succeeds, also
// when the table holds more than can be listed.
func (t *Table) Insert(x, y uint64) { t.add(x, y, 1) }

// Delete takes the pair (x, y) out, whether or not it was inserted. A pair that
// was not inserted, or not yet, is listed as deleted.
func (t *Table) Delete(x, y uint64) { t.add(x, y, -1) }

func (t *Table) add(x, y uint64, times int64) {
	e := t.layout.hash(x, y)
	var room places
	for _, p := range t.places(&e, &room) {
		t.cells[p.cell].add(t.layout.config.Sums, p.code, &e, times)
	}
}

// Reset empties the table. Lost subtables are back.
func (t *Table) Reset() {
	clear(t.cells)
	t.lost = 0
}

// Clone returns a copy that shares nothing that changes.
func (t *Table) Clone() *Table {
	return &Table{layout: t.layout, cells: slices.Clone(t.cells), lost: t.lost}
}

// Cell returns cell i. Bits that do not count are zero.
func (t *Table) Cell(i int) TableCell { return t.layout.reduced(&t.cells[i]) }

// SetCell replaces cell i, as when the cells were kept elsewhere. Any content
// is safe: what is no sum of pairs leaves a listing incomplete. The cells of a
// lost subtable stay lost.
func (t *Table) SetCell(i int, c TableCell) {
	if !t.isLost(i) {
		t.cells[i] = t.layout.reduced(&c)
	}
}

// reduced is a cell without the bits that do not count.
func (l *Layout) reduced(c *TableCell) TableCell {
	r := *c
	r.KeySum &= l.keyMask
	r.KeyCheck &= l.keyCheckMask
	r.ValueCheck &= l.valueCheckMask
	return r
}

// Subtract takes the content of other out of t, cell by cell. What both hold
// cancels, and what only other holds is listed as deleted. Subtables that one
// of the two has lost are lost in the result. It fails with ErrTableConfig if
// the tables were not configured alike, and then changes nothing.
func (t *Table) Subtract(other *Table) error {
	if other.layout == nil || t.layout == nil || !t.layout.config.equal(&other.layout.config) {
		return fmt.Errorf("subtract a table: it was configured otherwise; make both with one TableConfig: %w", ErrTableConfig)
	}
	t.lose(t.lost | other.lost)
	for from, to := range t.live {
		for i := from; i < to; i++ {
			t.cells[i].sub(t.layout.config.Sums, &other.cells[i])
		}
	}
	return nil
}
