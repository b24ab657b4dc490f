package rateless

import (
	"encoding/binary"
	"fmt"

	"github.com/syncd-io/syncd/internal/keyhash"
)

const (
	sumMask   = 1<<42 - 1
	countMask = 1<<4 - 1
)

// Cell is the sum of the pairs that map to it, field by field. Its fields are
// always reduced: S1 and S2 below p, Count below 16. The zero Cell is the sum of no
// pairs.
//
// It has no field that checks it. A cell that holds several differences mostly
// betrays itself. The index that a division makes of it belongs to other cells, or
// its checksum is not one of that index (see Decoder).
type Cell struct {
	S1    uint64 // Σ v mod p
	S2    uint64 // Σ k·v mod p
	Count uint8  // Σ 1 mod 16
}

// cellOf is the cell that holds just the pair p.
func cellOf(p Pair) Cell {
	return Cell{S1: uint64(p.Checksum), S2: keyhash.Mul(uint64(p.Index), uint64(p.Checksum)), Count: 1}
}

// IsZero reports whether all three fields are zero.
func (c Cell) IsZero() bool { return c == Cell{} }

// sub takes d out of c.
func (c *Cell) sub(d *Cell) {
	c.S1 = keyhash.Sub(c.S1, d.S1)
	c.S2 = keyhash.Sub(c.S2, d.S2)
	c.Count = (c.Count - d.Count) & countMask
}

func (c *Cell) inRange() bool {
	return c.S1 < keyhash.P && c.S2 < keyhash.P && c.Count <= countMask
}

// AppendCells appends the wire form of cells, CellSize bytes each: one
// little-endian number of 88 bits,
//
//	S1 | S2 << 42 | Count << 84
func AppendCells(b []byte, cells []Cell) []byte {
	for i := range cells {
		c := &cells[i]
		b = binary.LittleEndian.AppendUint64(b, c.S1|c.S2<<42)
		high := c.S2>>22 | uint64(c.Count)<<20
		b = append(b, byte(high), byte(high>>8), byte(high>>16))
	}
	return b
}

// DecodeCells reads what AppendCells wrote. ErrCell: the length is no
// multiple of CellSize, or a sum is not below p. Whatever it accepts encodes
// to the same bytes again.
func DecodeCells(b []byte) ([]Cell, error) {
	if len(b)%CellSize != 0 {
		return nil, fmt.Errorf("read cells: %d bytes are no multiple of %d: %w", len(b), CellSize, ErrCell)
	}
	cells := make([]Cell, len(b)/CellSize)
	for i := range cells {
		at := b[i*CellSize:][:CellSize]
		low := binary.LittleEndian.Uint64(at)
		high := uint64(at[8]) | uint64(at[9])<<8 | uint64(at[10])<<16
		cells[i] = Cell{
			S1:    low & sumMask,
			S2:    (low>>42 | high<<22) & sumMask,
			Count: uint8(high >> 20),
		}
		if !cells[i].inRange() {
			return nil, fmt.Errorf("read cells: a sum of cell %d is not below p; the sender's bytes are damaged or forged: %w", i, ErrCell)
		}
	}
	return cells, nil
}
