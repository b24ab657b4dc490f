package locator

// packed is an array of numbers of width bits each, 1 to 64, one behind the
// other in words. One word more than they fill lets two be read at once.
type packed struct {
	width uint
	words []uint64
}

func packedWords(n int, width uint) int { return int((uint64(n)*uint64(width)+63)/64) + 1 }

func newPacked(n int, width uint) packed {
	return packed{width, make([]uint64, packedWords(n, width))}
}

func (p packed) at(i int) uint64 {
	bit := uint64(i) * uint64(p.width)
	two := p.words[bit>>6:]
	return (two[0]>>(bit&63) | two[1]<<1<<(63-bit&63)) & (1<<p.width - 1)
}

// put sets number i, which is zero before.
func (p packed) put(i int, x uint64) {
	bit := uint64(i) * uint64(p.width)
	two := p.words[bit>>6:]
	two[0] |= x << (bit & 63)
	two[1] |= x >> 1 >> (63 - bit&63)
}
