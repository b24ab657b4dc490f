package rateless

import (
	"math/bits"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// Key keys the mapping and the check hash. Two sketches can be compared only if
// they were made with the same Key.
type Key [32]byte

// words are what Key is expanded to: the numbers that the mapping and the check
// hash multiply with.
type words struct {
	tables  *tables
	mapping [4]uint64
	check   [3]uint64
}

// topBit set in a word keeps word ^ x from being zero for each x below 2^63,
// and with it the product that would forget its other factor.
const topBit = 1 << 63

// odd is the golden ratio's fraction, 2^64/φ, a factor without structure.
const odd = 0x9e3779b97f4a7c15

func expand(key Key) words {
	hash := keyhash.Key(key)
	a := hash.Digest([]byte("iblt mapping"), nil, MappingVersion, nil)
	b := hash.Digest([]byte("iblt check"), nil, MappingVersion, nil)
	return words{
		tables:  theTables(),
		mapping: [4]uint64{a[0] | topBit, a[1] | 1, a[2], a[3] | 1},
		check:   [3]uint64{b[0] | topBit, b[1] | topBit, b[2]},
	}
}

// fold is the upper half of the 128-bit product xor its lower half.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hash is h(k, v), 26 bits: two rounds of multiply and fold. It has to tell a
// pure cell from a sum of several pairs. A member knows the Key and can aim it,
// which costs that member's peers a decode and never a wrong record, because a
// sync is proved by digests.
func (w *words) hash(k Index, v Checksum) uint32 {
	x := fold(uint64(k)^w.check[0], uint64(v)^w.check[1])
	return uint32(fold(x^w.check[2], odd)) & checkMask
}

// cellOf is the cell that holds just the pair p.
func (w *words) cellOf(p Pair) Cell {
	return Cell{
		S1:    uint64(p.Checksum),
		S2:    keyhash.Mul(uint64(p.Index), uint64(p.Checksum)),
		Check: w.hash(p.Index, p.Checksum),
		Count: 1,
	}
}
