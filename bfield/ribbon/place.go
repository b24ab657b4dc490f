package ribbon

import "math/bits"

// place is where the answer for a hash lies: two blocks of its level, one after
// the other, the hash at that level, and the start of its window.
type place struct {
	blocks      []uint64
	hash, start uint64
}

// find returns the place of a hash. ok is false if the table is empty.
func (t *table) find(h uint64) (p place, ok bool) {
	for i := range t.levels {
		l := &t.levels[i]
		h = rehash(h, 0)
		if len(l.codes) == 0 {
			h = l.salted(h)
		}
		start := l.start(h)
		if len(l.codes) > 0 && l.bumped(start) {
			continue
		}
		width := uint64(t.width())
		first := block(start) * width
		return place{l.words[first : first+2*width], h, start}, true
	}
	return place{}, false
}

// value reads the bits of the columns [from, to), from < to: each is the parity
// of two words under the coefficients, shifted to where the window begins.
func (p *place) value(from, to int) uint64 {
	c, offset := coefficients(p.hash), p.start&63
	first, second := c<<offset, c>>1>>(63-offset)
	width := len(p.blocks) / 2
	a, b := p.blocks[from:to], p.blocks[width+from:width+to]
	if wide {
		return parities(&a[0], width, len(a), first, second)
	}
	return paritiesGo(a, b, first, second)
}

// paritiesGo returns the parity of a[i]&first ^ b[i]&second in bit i.
func paritiesGo(a, b []uint64, first, second uint64) (v uint64) {
	b = b[:len(a)]
	for j, x := range a {
		// Column j comes into the highest bit and moves down to its own.
		v = v>>1 | uint64(bits.OnesCount64(x&first^b[j]&second))<<63
	}
	return v >> (uint(-len(a)) & 63)
}
