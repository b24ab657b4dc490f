package keyset

import (
	"encoding/binary"
	"math/bits"
)

// output appends bits to bytes, the lowest first.
type output struct {
	bytes []byte
	word  uint64
	used  uint // bits of word, below 64
}

// put appends the n lowest bits of x, of which no others are set.
func (o *output) put(x uint64, n uint) {
	o.word |= x << o.used
	if o.used+n < 64 {
		o.used += n
		return
	}
	o.bytes = binary.LittleEndian.AppendUint64(o.bytes, o.word)
	o.word = x >> 1 >> (63 - o.used)
	o.used = o.used + n - 64
}

// gap appends a gap with k bits of remainder.
func (o *output) gap(g uint64, k uint) {
	zeros := g >> k
	for ; zeros >= 32; zeros -= 32 {
		o.put(0, 32)
	}
	o.put(1<<zeros, uint(zeros)+1)
	o.put(g&(1<<k-1), k)
}

// end returns the bytes, with zeros up to the last one's end.
func (o *output) end() []byte {
	for used := int(o.used); used > 0; used -= 8 {
		o.bytes = append(o.bytes, byte(o.word))
		o.word >>= 8
	}
	return o.bytes
}

// input reads bits of bytes, the lowest first.
type input struct {
	bytes []byte
	at    uint64 // bits read
}

// peek returns 57 bits and perhaps more from here on, and zeros behind the end.
func (in *input) peek() uint64 {
	b := in.bytes[min(in.at>>3, uint64(len(in.bytes))):]
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b) >> (in.at & 7)
	}
	var eight [8]byte
	copy(eight[:], b)
	return binary.LittleEndian.Uint64(eight[:]) >> (in.at & 7)
}

func (in *input) left() uint64 { return 8*uint64(len(in.bytes)) - in.at }

// gap reads a gap with k bits of remainder. Each bit is read once, so that all
// gaps take time in proportion to the bytes.
func (in *input) gap(k uint) (g uint64, ok bool) {
	quotient := uint64(0)
	for {
		zeros := uint64(bits.TrailingZeros64(in.peek()))
		if zeros < 57 {
			quotient += zeros
			in.at += zeros + 1
			break
		}
		quotient += 32
		if in.at += 32; in.at > 8*uint64(len(in.bytes)) {
			return 0, false
		}
	}
	if in.at+uint64(k) > 8*uint64(len(in.bytes)) || quotient > ^uint64(0)>>k {
		return 0, false
	}
	low := min(k, 32)
	g = quotient << k
	g |= in.peek() & (1<<low - 1)
	in.at += uint64(low)
	if k > 32 {
		g |= in.peek() & (1<<(k-32) - 1) << 32
		in.at += uint64(k - 32)
	}
	return g, true
}

// ended reports whether nothing is left but zeros that fill the last byte.
func (in *input) ended() bool { return in.left() < 8 && in.peek()&(1<<in.left()-1) == 0 }
