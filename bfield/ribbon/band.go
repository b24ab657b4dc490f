package ribbon

import "math/bits"

// window is w, the number of columns that a row may touch. It is one machine
// word, so that adding two rows is one XOR.
const window = 64

// band is a system of linear equations over bits in row-echelon form. A row
// that begins in column i lies in slot i, with the coefficient of column i in
// bit 0. Rows never change once placed, so the last ones can be taken back.
type band []row

// row is one equation. The bits of coefficients pick columns, counted from the
// slot that holds it. result is what their XOR must be, one bit a value bit.
// No coefficients: the slot is empty.
type row struct{ coefficients, result uint64 }

// What became of an equation; a placed one returns its slot, which is ≥ 0.
const (
	redundant    = -1 // it follows from the others
	inconsistent = -2 // it contradicts the others
)

// insert adds an equation whose window begins in column i (Dillinger and Walzer,
// "Ribbon filter", 2021, section 2). As long as its first column is taken, it
// adds the row that took it, which moves its first column to the right.
func (b band) insert(i int, coefficients, result uint64) int {
	for {
		r := &b[i]
		if r.coefficients == 0 {
			*r = row{coefficients, result}
			return i
		}
		coefficients ^= r.coefficients
		result ^= r.result
		if coefficients == 0 {
			if result == 0 {
				return redundant
			}
			return inconsistent
		}
		skip := bits.TrailingZeros64(coefficients)
		coefficients >>= skip & 63
		i += skip
	}
}

// remove takes back the row placed last, or last but those already taken back.
func (b band) remove(slot int) { b[slot] = row{} }
