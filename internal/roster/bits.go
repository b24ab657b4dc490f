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

func (b bits) has(i int) bool {
	c := i / chunkBits
	return c < len(b) && b[c] != nil && b[c][i%chunkBits/64]>>(i%64)&1 == 1
}

// with is the set and i.
func (b bits) with(i int) bits {
	c := i / chunkBits
	grown := make(bits, max(len(b), c+1))
	copy(grown, b)
	var fresh chunk
	if grown[c] != nil {
		fresh = *grown[c]
	}
	fresh[i%chunkBits/64] |= 1 << (i % 64)
	grown[c] = &fresh
	return grown
}

// union is what is in b or o.
func (b bits) union(o bits) bits {
	if len(b) < len(o) {
		b, o = o, b
	}
	var joined bits
	for i, c := range o {
		if u := join(b[i], c); u != b[i] {
			if joined == nil {
				joined = append(joined, b...)
			}
			joined[i] = u
		}
	}
	if joined == nil {
		return b
	}
	return joined
}

// join is the union of two chunks: one of them, where it has all of the other.
func join(a, b *chunk) *chunk {
	if a == b || b == nil {
		return a
	}
	if a == nil {
		return b
	}
	var u chunk
	for i := range u {
		u[i] = a[i] | b[i]
	}
	switch u {
	case *a:
		return a
	case *b:
		return b
	}
	return &u
}

// intersect is what is in b and o.
func (b bits) intersect(o bits) bits {
	both := make(bits, min(len(b), len(o)))
	for i := range both {
		if b[i] == nil || o[i] == nil || b[i] == o[i] {
			if b[i] == o[i] {
				both[i] = b[i]
			}
			continue
		}
		var c chunk
		for w := range c {
			c[w] = b[i][w] & o[i][w]
		}
		both[i] = &c
	}
	return both
}

// minus is what is in b and not in o.
func (b bits) minus(o bits) bits {
	var left bits
	for i := range min(len(b), len(o)) {
		if b[i] == nil || o[i] == nil {
			continue
		}
		var c chunk
		for w := range c {
			c[w] = b[i][w] &^ o[i][w]
		}
		if c == *b[i] {
			continue
		}
		if left == nil {
			left = append(left, b...)
		}
		if left[i] = &c; c == (chunk{}) {
			left[i] = nil
		}
	}
	if left == nil {
		return b
	}
	return left
}

// both yields the numbers in b and o, ascending.
func (b bits) both(o bits) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range min(len(b), len(o)) {
			if b[i] == nil || o[i] == nil {
				continue
			}
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
		if b[i] == nil || o[i] == nil {
			continue
		}
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
			b = append(b, nil)
		}
		if b[c] == nil {
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
		switch {
		case c == nil || i < len(o) && o[i] == c:
		case i >= len(o) || o[i] == nil:
			if *c != (chunk{}) {
				return false
			}
		default:
			for w := range c {
				if c[w]&^o[i][w] != 0 {
					return false
				}
			}
		}
	}
	return true
}
