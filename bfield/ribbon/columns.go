package ribbon

import "math/bits"

// A solution has one bit for each slot and each column of the values. It is
// stored interleaved: 64 slots are a block of one word a column (Dillinger,
// Hübschle-Schneider, Sanders and Walzer, "Fast succinct retrieval and
// approximate membership using ribbon", SEA 2022). A bit of a value is then
// the parity of two words under masks (see place.value).

// solve substitutes back. It fills the blocks of words (width words each) with
// a solution of the band, whose length is 64 × the number of blocks. A slot
// that no equation decides has zeros.
func (b band) solve(words []uint64, width int) {
	// state[j] holds column j of the slots i … i+63.
	var space [64]uint64
	state := space[:width]
	for block := len(b)/64 - 1; block >= 0; block-- {
		rows := b[block*64:][:64]
		for i := 63; i >= 0; i-- {
			r := rows[i]
			c := r.coefficients
			for j, s := range state {
				s <<= 1
				state[j] = s | (uint64(bits.OnesCount64(s&c))^r.result>>(j&63))&1
			}
		}
		copy(words[block*width:], state)
		if block%(turnKeys/64) == 0 {
			giveWay()
		}
	}
}
