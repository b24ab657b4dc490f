package ribbon

import "math/bits"

// place is where the answer for a hash lies: the level, the hash there, and the
// start of its window. It has no pointers, which are slow to keep in arrays.
type place struct {
	level       int
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
		return place{i, h, start}, true
	}
	return place{}, false
}

// blocks returns the two blocks, one after the other, that hold the window of a
// place.
func (t *table) blocks(p place) []uint64 {
	width := uint64(t.width())
	first := block(p.start) * width
	return t.levels[p.level].words[first : first+2*width]
}

// value reads the bits of the columns [from, to), from < to. Each is the parity
// of two words under the coefficients, shifted to where the window begins.
func (t *table) value(p place, from, to int) uint64 {
	c, offset := coefficients(p.hash), p.start&63
	first, second := c<<offset, c>>1>>(63-offset)
	blocks, width := t.blocks(p), t.width()
	a, b := blocks[from:to], blocks[width+from:width+to]
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
