package rateless

import (
	"math/rand/v2"
	"testing"
)

// TestIndexMapRuns fills maps with indices that a forger would choose: alike in
// their low bits, in their high bits, or one after the other. A look-up passes a
// run of taken slots. Were a map that is at most half full filled at random, a
// run of r slots would begin at a given slot with a probability below 0.83^r
// (the Chernoff bound of r places drawn by r/2 indices): a run of 250 anywhere
// in the maps here would be seen less than once in 10^13 times.
func TestIndexMapRuns(t *testing.T) {
	const n, longest = 4096, 250
	r := rand.New(rand.NewPCG(43, 0))
	for shift := range 42 {
		for _, top := range []uint64{0, 1 << 41, r.Uint64() >> 22} {
			s := newIndexMap()
			s.salt = r.Uint64() | topBit
			var found []belief
			for j := range uint64(n) {
				found = append(found, belief{index: Index((j<<shift|j>>(42-shift))&(1<<42-1) ^ top)})
				s.set(int32(j), found)
			}
			run, first := 0, 0
			for first < len(s.slots) && s.slots[first].number != 0 {
				first++ // a run may go round the end
			}
			for i := range s.slots {
				if s.slots[(first+i)%len(s.slots)].number == 0 {
					run = 0
				} else if run++; run > longest {
					t.Fatalf("indices %d apart, top %x, salt %x: a run of more than %d slots of %d", uint64(1)<<shift, top, s.salt, longest, len(s.slots))
				}
			}
		}
	}
}
