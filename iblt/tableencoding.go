package iblt

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// tableVersion is the version of the form that MarshalBinary writes.
const tableVersion = 1

const (
	tableMagic = "IBLT"
	// tableHeader is the length of the fixed part before degrees and cells.
	tableHeader = len(tableMagic) + 10 + 4 + 8 + 4
)

// MarshalBinary writes the table, in a form that is the same for equal tables:
//
//	"IBLT"  version  placement  sums  checks  check bits  quotient  encoding
//	hashes  number of degrees  0              a byte each
//	cells (4 bytes)  seed (8)  lost subtables (4)        little-endian
//	degrees: hashes (1), share (2)            each
//	cells, as Encoding says; those that were lost are left out
//
// The bytes hold the Seed: keep them secret if an adversary chooses keys. It fails
// only for the zero Table.
func (t *Table) MarshalBinary() ([]byte, error) {
	if t.layout == nil {
		return nil, fmt.Errorf("write a table: make it with NewTable first: %w", ErrTableConfig)
	}
	c := &t.layout.config
	b := []byte(tableMagic)
	b = append(b, tableVersion, byte(c.Placement), byte(c.Sums), byte(c.Checks), byte(c.CheckBits),
		flagByte(c.Quotient), byte(c.Encoding), byte(c.Hashes), byte(len(c.Degrees)), 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Cells))
	b = binary.LittleEndian.AppendUint64(b, c.Seed)
	b = binary.LittleEndian.AppendUint32(b, t.lost)
	for _, d := range c.Degrees {
		b = append(b, byte(d.Hashes))
		b = binary.LittleEndian.AppendUint16(b, uint16(d.Share))
	}
	if c.Encoding == Words {
		return t.appendWords(b), nil
	}
	return t.appendPacked(b), nil
}

// UnmarshalBinary replaces the table by the one that MarshalBinary wrote, with
// its configuration. It fails with ErrTableBytes for anything else, and then
// changes nothing. It takes time and memory in proportion to len(b), at most
// 320 bytes for each byte. What is accepted has at least a bit for each cell.
// Accepted bytes are written again alike.
//
// The content may still be forged; listing then takes its O(m) time, and is
// incomplete or wrong. Where the table's configuration is known beforehand,
// compare Config with it.
func (t *Table) UnmarshalBinary(b []byte) error {
	read, rest, err := readTableHeader(b)
	if err == nil && read.layout.config.Encoding == Words {
		err = read.readWords(rest)
	} else if err == nil {
		err = read.readPacked(rest)
	}
	if err != nil {
		return fmt.Errorf("read a table of %d bytes: %w", len(b), err)
	}
	*t = *read
	return nil
}

// readTableHeader returns a table without cells, and the bytes of the cells.
// Both encodings check that these are enough before they allocate. Each cell
// takes at least a bit of them.
func readTableHeader(b []byte) (*Table, []byte, error) {
	if len(b) < tableHeader || string(b[:len(tableMagic)]) != tableMagic {
		return nil, nil, fmt.Errorf("no table's header: %w", ErrTableBytes)
	}
	h := b[len(tableMagic):]
	if h[0] != tableVersion {
		return nil, nil, fmt.Errorf("version %d, this program reads %d: %w", h[0], tableVersion, ErrTableBytes)
	}
	config := TableConfig{
		Placement: Placement(h[1]), Sums: Sums(h[2]), Checks: Checks(h[3]), CheckBits: int(h[4]),
		Quotient: h[5] != 0, Encoding: Encoding(h[6]), Hashes: int(h[7]),
		Cells: int(binary.LittleEndian.Uint32(h[10:])),
		Seed:  binary.LittleEndian.Uint64(h[14:]),
	}
	lost := binary.LittleEndian.Uint32(h[22:])
	degrees, rest := int(h[8]), h[26:]
	if len(rest) < 3*degrees || h[5] > 1 || h[9] != 0 {
		return nil, nil, fmt.Errorf("a field of the header is out of range: %w", ErrTableBytes)
	}
	for range degrees {
		config.Degrees = append(config.Degrees, Degree{Hashes: int(rest[0]), Share: int(binary.LittleEndian.Uint16(rest[1:]))})
		rest = rest[3:]
	}
	layout, err := NewLayout(config)
	if err != nil {
		return nil, nil, fmt.Errorf("%v: %w", err, ErrTableBytes)
	}
	if layout.config.CheckBits != config.CheckBits {
		return nil, nil, fmt.Errorf("check bits %d: %w", config.CheckBits, ErrTableBytes)
	}
	t := &Table{layout: layout, lost: lost}
	if lost != 0 && (config.Placement != Subtables || bits.Len32(lost) > config.Hashes || bits.OnesCount32(lost) == config.Hashes) {
		return nil, nil, fmt.Errorf("lost subtables %#x of %d: %w", lost, config.Hashes, ErrTableBytes)
	}
	return t, rest, nil
}

// liveCells is the number of cells that are not lost.
func (t *Table) liveCells() (n int) {
	for from, to := range t.live {
		n += to - from
	}
	return n
}

// CellBytes is the length of a cell in the encoding Words.
func (c TableConfig) CellBytes() int {
	key, value := c.lengths()
	return 4 + 8 + 8 + key/8 + value/8
}

// appendWords writes each field of each cell at full length, little-endian:
// count, keySum, valueSum, hashkeySum, hashvalueSum.
func (t *Table) appendWords(b []byte) []byte {
	keyCheck, valueCheck := t.layout.config.lengths()
	word := func(x uint64, bytes int) {
		for range bytes {
			b = append(b, byte(x))
			x >>= 8
		}
	}
	for from, to := range t.live {
		for i := from; i < to; i++ {
			c := t.Cell(i)
			word(uint64(uint32(c.Count)), 4)
			word(c.KeySum, 8)
			word(c.ValueSum, 8)
			word(c.KeyCheck, keyCheck/8)
			word(c.ValueCheck, valueCheck/8)
		}
	}
	return b
}

func (t *Table) readWords(b []byte) error {
	config := &t.layout.config
	if size := t.liveCells() * config.CellBytes(); len(b) != size {
		return fmt.Errorf("%d bytes of cells, not %d: %w", len(b), size, ErrTableBytes)
	}
	t.cells = make([]TableCell, config.Cells)
	keyCheck, valueCheck := config.lengths()
	word := func(bytes int) (x uint64) {
		for i := range bytes {
			x |= uint64(b[i]) << (8 * i)
		}
		b = b[bytes:]
		return x
	}
	for from, to := range t.live {
		for i := from; i < to; i++ {
			c := &t.cells[i]
			c.Count = int32(word(4))
			c.KeySum = word(8)
			c.ValueSum = word(8)
			c.KeyCheck = word(keyCheck / 8)
			c.ValueCheck = word(valueCheck / 8)
			if c.KeySum > t.layout.keyMask {
				return fmt.Errorf("the quotients of cell %d have too many bits: %w", i, ErrTableBytes)
			}
		}
	}
	return nil
}

func flagByte(set bool) byte {
	if set {
		return 1
	}
	return 0
}
