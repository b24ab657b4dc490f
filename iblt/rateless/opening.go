package rateless

// join is the first cell of the blocks. The cells before it are the bits of one
// word. Bit j is set if the index belongs to cell j.
const join = 64

// openings are the probabilities that an index belongs to the cells below join, in
// 256ths. Each is drawn by itself, and all indices are alike. Classes alone would
// decode small differences badly. Two indices with few cells each are together in
// all of them for long. The first cells are denser, so that two or three pairs
// part early. Cell 0 holds every pair. The numbers come from a search
// (docs/DEGREES.md).
var openings = [join]uint8{
	255, 168, 131, 107, 90, 78, 69, 61, 55, 51, 46, 43, 40, 37, 35, 33,
	31, 30, 28, 27, 20, 19, 19, 18, 17, 17, 16, 15, 15, 14, 14, 13,
	13, 13, 12, 12, 12, 11, 11, 11, 11, 10, 10, 10, 10, 9, 9, 9,
	9, 9, 9, 8, 8, 8, 8, 8, 8, 8, 7, 7, 7, 7, 7, 7,
}

// digits is the number of binary digits of the probabilities.
const digits = 8

// masksOf returns each digit of all openings, that of weight 1/256 first.
func masksOf() (masks [digits]uint64) {
	for j, p := range openings {
		for i := range masks {
			masks[i] |= uint64(p) >> i & 1 << j
		}
	}
	return masks
}

// opening returns the cells below join that the index with this seed belongs to.
// Bit j of eight random words makes a number of eight digits. It is compared
// with that of openings digit by digit, for all cells at once. Going up from the
// lowest digit, the number is less so far if its digit is less, or if it is
// equal and the number was less before. That is the majority of three: what was
// so before, the digit of openings, and the opposite of the random digit. The
// opposite is as random as the digit.
func (t *tables) opening(seed uint64) uint64 {
	word := uint64(0)
	for _, mask := range t.masks {
		seed += increment
		random := draw(seed)
		word = word&random | mask&(word|random)
	}
	return word | 1
}
