package rateless

import (
	"math/bits"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// Key keys the mapping. Two sketches can be compared only if
// they were made with the same Key.
type Key [32]byte

// words are what Key is expanded to: the numbers that the mapping multiplies with.
type words struct {
	tables  *tables
	mapping [4]uint64
}

// topBit set in a word keeps word ^ x from being zero for each x below 2^63.
// A zero would make the product forget its other factor.
const topBit = 1 << 63

// odd is the golden ratio's fraction, 2^64/φ, a factor without structure.
const odd = 0x9e3779b97f4a7c15

func expand(key Key) words {
	hash := keyhash.Key(key)
	a := hash.Digest([]byte("iblt mapping"), nil, MappingVersion, nil)
	return words{
		tables:  theTables(),
		mapping: [4]uint64{a[0] | topBit, a[1] | 1, a[2], a[3] | 1},
	}
}

// fold is the upper half of the 128-bit product xor its lower half.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
