package rateless

import (
	"math/bits"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// The mapping of an index follows from one random word, its seed, by a stream
// of numbered words. Word i is a hash of seed and i alone, so that any of them
// is drawn without the others.
//
//	word 0            the index's bit in the estimator
//	words 1 to 8      the cells below join (opening.go)
//	word 9 + b        the cell in block b, from join on (blocks.go)
//
// The seed's own bits choose class and first edge of the blocks.
const firstBlock = 1 + digits

// increment and mixer are the constants of wyrand (Wang Yi 2019), the random
// stream of a mapping.
const (
	increment = 0xa0761d6478bd642f
	mixer     = 0xe7037ed1a0b428db
)

// seed is the keyed hash of an index that its mapping follows from.
func (w *words) seed(k Index) uint64 {
	return fold(fold(uint64(k)^w.mapping[0], w.mapping[1])^w.mapping[2], w.mapping[3])
}

// draw is the word of a state; that of word i is seed + i·increment.
func draw(state uint64) uint64 { return fold(state, state^mixer) }

// belongs reports whether index k belongs to cell at.
func (w *words) belongs(k Index, at uint64) bool {
	seed := w.seed(k)
	if at < join {
		return w.tables.opening(seed)>>at&1 == 1
	}
	b := w.tables.blocksFrom(seed, at)
	return b.cell(w.tables) == at
}

// mapping visits the cells that an index belongs to, in order.
type mapping struct {
	at      uint64 // the present cell
	opening uint64 // the later cells below join, as bits
	blocks  blocks // the later blocks
}

// start stands at cell 0, which holds every pair.
func (w *words) start(k Index) mapping {
	seed := w.seed(k)
	return mapping{opening: w.tables.opening(seed) &^ 1, blocks: w.tables.blocks(seed)}
}

// resume stands at cell at, which index k must belong to.
func (w *words) resume(k Index, at uint64) mapping {
	seed := w.seed(k)
	if at < join {
		return mapping{at: at, opening: w.tables.opening(seed) &^ (2<<at - 1), blocks: w.tables.blocks(seed)}
	}
	return mapping{at: at, blocks: w.tables.blocksFrom(seed, at).next()}
}

// fill writes to cells the mapping's cells from the present one on that are
// below end, as many as fit. It returns how many. The mapping is then at the
// next.
func (m *mapping) fill(t *tables, cells []uint32, end uint64) int {
	n := 0
	for m.at < end && n < len(cells) {
		cells[n] = uint32(m.at)
		n++
		if m.opening != 0 {
			m.at = uint64(bits.TrailingZeros64(m.opening))
			m.opening &= m.opening - 1
			continue
		}
		m.at, m.blocks = m.blocks.cell(t), m.blocks.next()
		if m.at < join { // in the first block, which may have begun before join
			m.at, m.blocks = m.blocks.cell(t), m.blocks.next()
		}
	}
	return n
}

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
