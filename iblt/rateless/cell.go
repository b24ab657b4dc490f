package rateless

import (
	"encoding/binary"
	"fmt"

	"github.com/syncd-io/syncd/internal/keyhash"
)

const (
	sumMask   = 1<<48 - 1
	checkMask = 1<<checkBits - 1
	countMask = 1<<6 - 1
)

// checkBits is the width of the check field: what the other three leave of 128
// bits, and enough. A cell j that holds several differences is accepted as one
// with probability 2^−checkBits · v(j) if its count is 1, where v(j) is the
// probability that an index belongs to cell j; with the other counts it is less
// by the share of all indices that are held, 10^−8 and below. TestFalseRecoveries
// measures that with 4 to 10 bits against 10^6 keys. A decode of 100, 1,000,
// 10^4 and 10^6 differences, cells coming in bursts of a fiftieth, makes such
// tests with v(j) = 20, 50, 100 and 200 in sum: with 26 bits some one decode in 3
// million, 1.3 million, 700,000 and 300,000 accepts a wrong pair. Such a decode
// does not end, or the digests show it.
const checkBits = 26

// Cell is the sum of the pairs that map to it, field by field. Its fields are
// always reduced: S1 and S2 below p, Check below 2^26, Count below 64. The zero
// Cell is the sum of no pairs.
type Cell struct {
	S1    uint64 // Σ v mod p
	S2    uint64 // Σ k·v mod p
	Check uint32 // Σ h(k, v) mod 2^26
	Count uint8  // Σ 1 mod 64
}

// IsZero reports whether all four fields are zero.
func (c Cell) IsZero() bool { return c == Cell{} }

// sub takes d out of c.
func (c *Cell) sub(d *Cell) {
	c.S1 = keyhash.Sub(c.S1, d.S1)
	c.S2 = keyhash.Sub(c.S2, d.S2)
	c.Check = (c.Check - d.Check) & checkMask
	c.Count = (c.Count - d.Count) & countMask
}

func (c *Cell) inRange() bool {
	return c.S1 < keyhash.P && c.S2 < keyhash.P && c.Check <= checkMask && c.Count <= countMask
}

// AppendCells appends the wire form of cells, CellSize bytes each: two
// little-endian 64-bit words,
//
//	S1 | (low 16 bits of Check) << 48
//	S2 | (high 10 bits of Check) << 48 | Count << 58
func AppendCells(b []byte, cells []Cell) []byte {
	for i := range cells {
		c := &cells[i]
		check := uint64(c.Check)
		b = binary.LittleEndian.AppendUint64(b, c.S1|check<<48)
		b = binary.LittleEndian.AppendUint64(b, c.S2|check>>16<<48|uint64(c.Count)<<58)
	}
	return b
}

// DecodeCells reads what AppendCells wrote. It refuses with ErrCell a length
// that is no multiple of CellSize and sums that are not below p; whatever it
// accepts encodes to the same bytes again.
func DecodeCells(b []byte) ([]Cell, error) {
	if len(b)%CellSize != 0 {
		return nil, fmt.Errorf("read cells: %d bytes are no multiple of %d: %w", len(b), CellSize, ErrCell)
	}
	cells := make([]Cell, len(b)/CellSize)
	for i := range cells {
		lo := binary.LittleEndian.Uint64(b[i*CellSize:])
		hi := binary.LittleEndian.Uint64(b[i*CellSize+8:])
		cells[i] = Cell{
			S1:    lo & sumMask,
			S2:    hi & sumMask,
			Check: uint32(lo>>48 | hi>>48&(1<<10-1)<<16),
			Count: uint8(hi >> 58),
		}
		if !cells[i].inRange() {
			return nil, fmt.Errorf("read cells: a sum of cell %d is not below p; the sender's bytes are damaged or forged: %w", i, ErrCell)
		}
	}
	return cells, nil
}
