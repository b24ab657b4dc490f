package roster

import (
	"iter"
	mathbits "math/bits"
)

// bits is a set of small numbers. It never changes; sets share the chunks in which they
// agree. The pasts of a history that is nearly a line differ in their last chunk only.
// So 65,536 of them take some 40 MiB and not 256.
type bits []*chunk

const (
	chunkWords = 64
	chunkBits  = chunkWords * 64
)

type chunk [chunkWords]uint64

// none is the chunk without numbers, which is never changed.
var none chunk

// chunk is the one of a place.
func (b bits) chunk(i int) *chunk {
	if i < len(b) {
		return b[i]
	}
	return &none
}

func (b bits) has(i int) bool { return b.chunk(i / chunkBits)[i%chunkBits/64]>>(i%64)&1 == 1 }

// with is the set and i.
func (b bits) with(i int) bits { return b.union(bitsOf([]int{i})) }

// combined is what op makes of b and o, word by word. It shares what it can with them.
func (b bits) combined(o bits, op func(x, y uint64) uint64) bits {
	all := make(bits, max(len(b), len(o)))
	for i := range all {
		x, y := b.chunk(i), o.chunk(i)
		if x == y && op(1, 1) == 1 { // what both have stays
			all[i] = x
			continue
		}
		var c chunk
		for w := range c {
			c[w] = op(x[w], y[w])
		}
		switch c {
		case none:
			all[i] = &none
		case *x:
			all[i] = x
		case *y:
			all[i] = y
		default:
			made := c // c itself stays on the stack
			all[i] = &made
		}
	}
	return all
}

// union is what is in b or o.
func (b bits) union(o bits) bits {
	return b.combined(o, func(x, y uint64) uint64 { return x | y })
}

// intersect is what is in b and o.
func (b bits) intersect(o bits) bits {
	return b.combined(o, func(x, y uint64) uint64 { return x & y })
}

// minus is what is in b and not in o.
func (b bits) minus(o bits) bits {
	return b.combined(o, func(x, y uint64) uint64 { return x &^ y })
}

// both yields the numbers in b and o, ascending.
func (b bits) both(o bits) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range min(len(b), len(o)) {
			for w := range b[i] {
				for word := b[i][w] & o[i][w]; word != 0; word &= word - 1 {
					if !yield(i*chunkBits + w*64 + mathbits.TrailingZeros64(word)) {
						return
					}
				}
			}
		}
	}
}

// all yields the numbers in b, ascending.
func (b bits) all() iter.Seq[int] { return b.both(b) }

// meets reports whether b and o have a number in common.
func (b bits) meets(o bits) bool {
	for range b.both(o) {
		return true
	}
	return false
}

// count is how many numbers are in b and o. Long pasts are counted, so it goes by words.
func (b bits) count(o bits) (n int) {
	for i := range min(len(b), len(o)) {
		for w := range b[i] {
			n += mathbits.OnesCount64(b[i][w] & o[i][w])
		}
	}
	return n
}

// bitsOf is a set of its own, which drop may change.
func bitsOf(numbers []int) (b bits) {
	for _, i := range numbers {
		c := i / chunkBits
		for len(b) <= c {
			b = append(b, &none)
		}
		if b[c] == &none {
			b[c] = new(chunk)
		}
		b[c][i%chunkBits/64] |= 1 << (i % 64)
	}
	return b
}

// drop takes a number out of a set that bitsOf has made, which shares nothing.
func (b bits) drop(i int) { b[i/chunkBits][i%chunkBits/64] &^= 1 << (i % 64) }

// within reports whether o has all that b has.
func (b bits) within(o bits) bool {
	for i, c := range b {
		of := o.chunk(i)
		if c == of {
			continue
		}
		for w := range c {
			if c[w]&^of[w] != 0 {
				return false
			}
		}
	}
	return true
}
