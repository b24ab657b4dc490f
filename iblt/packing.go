package iblt

import (
	"fmt"
	"math/bits"
)

// Packed cells (paper, section 4: zero entries that can be compressed,
// variable-length counts) are
//
//	the width of keySums, the width of valueSums       a byte each
//	a bit for each cell, lost or not: is it occupied?  complete bytes
//	the occupied cells                                 bits, completed to a byte
//
// and an occupied cell is
//
//	count: 1, 0, 2, −1, 3, −2 … as the numbers 1, 2, 3 … in Elias' gamma code
//	keySum and valueSum, cut to the widths
//	is this one pair? a bit, if there are checks and the count is 1 or −1
//	otherwise hashkeySum and hashvalueSum, as far as the table has them
//
// The widths are the least from which extending the sign restores all sums.
// Small keys and values have small sums, some of them negative. Most cells
// hold one pair. Such a cell needs no check sums: they are the hashes of the
// pair.

// countCode numbers the counts, those that are met most first.
func countCode(count int32) uint64 {
	n := count - 1
	return uint64(uint32(n<<1^n>>31)) + 1
}

func countOf(code uint64) int32 {
	z := uint32(code - 1)
	return int32(z>>1) ^ -int32(z&1) + 1
}

// countBits bounds the bits of a code: the codes are 1 to 2^32.
const countBits = 33

// extend takes the low width bits of x as a signed number.
func extend(x uint64, width int) uint64 {
	if width == 0 {
		return 0
	}
	unused := 64 - width
	return uint64(int64(x<<unused) >> unused)
}

// widthOf is the least width from which extend restores x.
func widthOf(x uint64) int {
	if x == 0 {
		return 0
	}
	return bits.Len64(x^uint64(int64(x)>>63)) + 1
}

// signed is a cell with its keySum extended from the bits that count. This
// keeps small negative sums short.
func (l *Layout) signed(c TableCell) TableCell {
	c.KeySum = extend(c.KeySum, bits.Len64(l.keyMask))
	return c
}

// pairOf returns what a cell with count 1 or −1 is if it holds one pair. That
// is the same cell with the check sums of the pair.
func (l *Layout) pairOf(c TableCell, at int32) (pair TableCell, ok bool) {
	code, y := c.KeySum, c.ValueSum
	if c.Count < 0 && l.config.Sums == Wrapping {
		code, y = -code, -y
	}
	code &= l.keyMask
	x, ok := l.key(code, at)
	if !ok {
		return c, false
	}
	e := l.hash(x, y)
	pair.add(l.config.Sums, code, &e, int64(c.Count))
	return l.reduced(&pair), true
}

func (t *Table) appendPacked(b []byte) []byte {
	l := t.layout
	keyWidth, valueWidth := 0, 0
	occupied := bitWriter{}
	for i := range t.cells { // lost cells are zero
		c := l.signed(t.Cell(i))
		keyWidth = max(keyWidth, widthOf(c.KeySum))
		valueWidth = max(valueWidth, widthOf(c.ValueSum))
		occupied.write(uint64(flagByte(c != TableCell{})), 1)
	}
	b = append(b, byte(keyWidth), byte(valueWidth))
	b = append(b, occupied.bytes()...)
	w := bitWriter{out: b}
	for from, to := range t.live {
		for i := from; i < to; i++ {
			c := t.Cell(i)
			if c == (TableCell{}) {
				continue
			}
			w.gamma(countCode(c.Count))
			w.write(c.KeySum, keyWidth)
			w.write(c.ValueSum, valueWidth)
			l.packChecks(&w, &c, int32(i))
		}
	}
	return w.bytes()
}

func (l *Layout) packChecks(w *bitWriter, c *TableCell, at int32) {
	if l.config.Checks == NoChecks {
		return
	}
	if c.Count == 1 || c.Count == -1 {
		pair, ok := l.pairOf(*c, at)
		same := ok && pair == *c
		w.write(uint64(flagByte(same)), 1)
		if same {
			return
		}
	}
	key, value := l.config.lengths()
	w.write(c.KeyCheck, key)
	w.write(c.ValueCheck, value)
}

func (t *Table) readPacked(b []byte) error {
	l := t.layout
	bitmap := (l.config.Cells + 7) / 8
	if len(b) < 2+bitmap {
		return fmt.Errorf("%d bytes are too few for %d cells: %w", len(b), l.config.Cells, ErrTableBytes)
	}
	keyWidth, valueWidth := int(b[0]), int(b[1])
	if keyWidth > bits.Len64(l.keyMask) || valueWidth > 64 {
		return fmt.Errorf("sums of %d and %d bits: %w", keyWidth, valueWidth, ErrTableBytes)
	}
	occupied := bitReader{in: b[2 : 2+bitmap]}
	r := bitReader{in: b[2+bitmap:]}
	t.cells = make([]TableCell, l.config.Cells)
	keyMost, valueMost := 0, 0
	for i := range t.cells {
		if occupied.read(1) == 0 {
			continue
		}
		code, ok := r.gamma(countBits)
		if !ok || code > 1<<32 {
			return fmt.Errorf("the count of cell %d is out of range: %w", i, ErrTableBytes)
		}
		c := TableCell{Count: countOf(code)}
		c.KeySum = extend(r.read(keyWidth), keyWidth) & l.keyMask
		c.ValueSum = extend(r.read(valueWidth), valueWidth)
		if err := l.unpackChecks(&r, &c, int32(i)); err != nil {
			return err
		}
		if c == (TableCell{}) || t.isLost(i) {
			return fmt.Errorf("cell %d is called occupied and is zero or lost: %w", i, ErrTableBytes)
		}
		keyMost = max(keyMost, widthOf(l.signed(c).KeySum))
		valueMost = max(valueMost, widthOf(c.ValueSum))
		t.cells[i] = c
	}
	if !r.atEnd() || !occupied.atEnd() {
		return fmt.Errorf("the cells end too early or too late: %w", ErrTableBytes)
	}
	if keyMost != keyWidth || valueMost != valueWidth {
		return fmt.Errorf("sums are written with more bits than they need: %w", ErrTableBytes)
	}
	return nil
}

func (l *Layout) unpackChecks(r *bitReader, c *TableCell, at int32) error {
	if l.config.Checks == NoChecks {
		return nil
	}
	single := c.Count == 1 || c.Count == -1
	var pair TableCell
	isPair := false
	if single {
		pair, isPair = l.pairOf(*c, at)
		if r.read(1) == 1 {
			if !isPair {
				return fmt.Errorf("cell %d is called one pair and does not hold one: %w", at, ErrTableBytes)
			}
			*c = pair
			return nil
		}
	}
	key, value := l.config.lengths()
	c.KeyCheck = r.read(key)
	c.ValueCheck = r.read(value)
	if isPair && *c == pair {
		return fmt.Errorf("cell %d is one pair and is not called so: %w", at, ErrTableBytes)
	}
	return nil
}
