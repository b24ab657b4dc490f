package rateless

import (
	"math/bits"

	"github.com/syncd-io/syncd/internal/keyhash"
)

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
