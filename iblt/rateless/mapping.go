package rateless

import "math/bits"

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
