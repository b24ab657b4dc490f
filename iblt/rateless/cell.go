package rateless

import (
	"encoding/binary"
	"fmt"
	"math/bits"

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

// Index is a key's place in the set: a number from 1 to P − 1. A keyed hash
// makes it, so that a peer cannot choose two keys that share an index.
type Index uint64

// Checksum stands for what is stored under an index. It is a number that Seal
// made for this index, or 0 for nothing stored. Its lowest 8 bits check the
// index and the other bits. By them a Decoder can tell it from the sum of
// several.
type Checksum uint64

// Seal is the checksum that stands for rest, a hash of what is stored under index
// k. rest is a number from 1 to 2^34 − 2. 0 and 2^34 − 1 are taken for their
// neighbours; a larger number has no meaning.
func Seal(k Index, rest uint64) Checksum { return Checksum(keyhash.Seal(uint64(k), rest)) }

// Rest is what Seal was given; of the checksum 0 it is 0.
func (v Checksum) Rest() uint64 { return uint64(v) >> keyhash.CheckBits }

// Pair is one element of the set that is reconciled.
type Pair struct {
	Index    Index
	Checksum Checksum
}

// isPair reports whether p may be in a set, or stands for no record.
func isPair(p Pair) bool {
	return p.Checksum == 0 || p.Index-1 < keyhash.P-1 && keyhash.Sealed(uint64(p.Index), uint64(p.Checksum))
}

func notAPair(p Pair) error {
	return fmt.Errorf("sketch index %d with checksum %d: %w", p.Index, p.Checksum, ErrPair)
}

func mustBePair(p Pair) {
	if !isPair(p) {
		panic(notAPair(p))
	}
}

// sum is a cell of 16 bytes that is added to often and read seldom. It is reduced
// when it is read, and not with each pair. What is left is two additions. The
// count is above the 60 bits of the first sum, where its carry is lost: it counts
// modulo 16.
type sum struct {
	first  uint64 // Σ 1 above, Σ v below: p or some multiple of it too large
	second uint64 // Σ k·v, likewise
}

const (
	sumBits = 60
	// maxTerms is how many terms a sum has room for, which are below 2^42 each.
	maxTerms = 1 << (sumBits - 42)
)

// sumOf is the sum of one term.
func sumOf(c *Cell) sum { return sum{c.S1 | uint64(c.Count)<<sumBits, c.S2} }

// termOf is what the pair p is worth in each of its cells.
func termOf(p Pair) sum {
	return sum{uint64(p.Checksum) | 1<<sumBits, keyhash.Mul(uint64(p.Index), uint64(p.Checksum))}
}

// negative is what taking a term away adds.
func negative(t sum) sum {
	return sum{keyhash.Sub(0, t.first&(1<<sumBits-1)) | -(t.first >> sumBits << sumBits), keyhash.Sub(0, t.second)}
}

// between is what replacing old by new adds, which have one index and different
// checksums. Either may be 0.
func between(old, new Pair) sum {
	change := keyhash.Sub(uint64(new.Checksum), uint64(old.Checksum))
	t := sum{change, keyhash.Mul(uint64(new.Index), change)}
	switch {
	case old.Checksum == 0:
		t.first |= 1 << sumBits
	case new.Checksum == 0:
		t.first |= countMask << sumBits
	}
	return t
}

// add adds one term.
func (s *sum) add(d *sum) {
	s.first += d.first
	s.second += d.second
}

// cell is the sum's value.
func (s *sum) cell() Cell {
	return Cell{
		S1:    keyhash.Reduce(s.first & (1<<sumBits - 1)),
		S2:    keyhash.Reduce(s.second),
		Count: uint8(s.first >> sumBits),
	}
}

// sums are cells that take the same number of terms at most. The zero value
// has no cells.
type sums struct {
	at    []sum
	terms int // no sum has more; at most maxTerms
}

// term makes room for one more term in each sum. Every 262,143 terms it reduces
// all of them, some 2 ns a sum.
func (s *sums) term() {
	if s.terms == maxTerms {
		for i := range s.at {
			c := s.at[i].cell()
			s.at[i] = sumOf(&c)
		}
		s.terms = 1
	}
	s.terms++
}

// values returns the cells of the sums [from, to).
func (s *sums) values(from, to int) []Cell {
	out := make([]Cell, to-from)
	for i := range out {
		out[i] = s.at[from+i].cell()
	}
	return out
}

// slot is a cell that is being peeled, in 16 bytes. Four share a line of the cache.
// It is a sum that is always reduced. The two bits above the first sum tell whether
// the cell is in the queue or among the waiting.
type slot sum

const (
	queuedBit = 42
	queued    = 1 << queuedBit // in the queue
	waits     = 1 << 43        // among the waiting
)

// slotOf is the slot of a cell, whose sums must be reduced. A larger S1 would reach the two bits.
func slotOf(c *Cell) slot { return slot(sumOf(c)) }

func (s *slot) cell() Cell {
	return Cell{S1: s.first & sumMask, S2: s.second, Count: uint8(s.first >> sumBits)}
}

func (s *slot) isZero() bool { return s.first&^(queued|waits)|s.second == 0 }

// single reports whether a cell may hold one difference only. Its count is then −1, 0
// or 1, and neither sum is zero.
func (s *slot) single() bool {
	return s.few() == 1 && s.first&sumMask != 0 && s.second != 0
}

// few is 1 if the count is −1, 0 or 1, and otherwise 0. The count is above all
// other bits.
func (s *slot) few() uint64 {
	_, less := bits.Sub64(s.first+1<<sumBits, 3<<sumBits, 0)
	return less
}

// sub takes a reduced term out of the cell. The differences are negative as often as
// not, so that a branch would be guessed wrongly as often.
func (s *slot) sub(t *sum) {
	v := s.first&sumMask - t.first&sumMask
	v += keyhash.P & uint64(int64(v)>>63)
	w := s.second - t.second
	w += keyhash.P & uint64(int64(w)>>63)
	s.first, s.second = s.first&^sumMask-t.first&^sumMask|v, w
}
