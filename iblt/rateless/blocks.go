package rateless

import (
	"math/big"
	"math/bits"
	"sync"
)

// From cell join on an index belongs to one cell in each block of a geometric
// sequence of blocks. Each cell of a block is as likely as the others. Blocks
// begin and end at edges, 64 to an octave: edge n is ⌊2^(n/64)⌋. A class of
// indices has blocks of so many edges, its stride. A draw chooses the edge where
// an index's first block begins, among the last stride edges up to that of cell
// join. What lies before join is no cell.
//
// Few indices have short blocks and many cells. They are recovered first at large
// differences, and open the cells of the others (irregular degrees, Goodrich and
// Mitzenmacher 2011, footnote 5). No draw depends on another, so that one tells
// whether an index belongs to a cell.
const (
	octaveEdges = 64
	joinEdge    = 6 * octaveEdges  // the edge at cell join
	lastEdge    = 31 * octaveEdges // the edge at 2^31; all beyond are there too
)

// classes have shares of all indices in 256ths, and strides. They come from a
// search (docs/DEGREES.md).
var classes = [...]struct{ share, stride uint16 }{{33, 9}, {50, 32}, {106, 67}, {67, 185}}

const minStride, maxStride = 9, 185

// tables are what all mappings share. They are made of integers, so that
// each processor makes the same.
type tables struct {
	masks   [digits]uint64                 // of openings
	strides [256]uint16                    // by the upper byte of a seed
	edges   [lastEdge + 2*maxStride]uint32 // cells
	near    [octaveEdges]uint8             // by the first seven bits of a cell: the last edge of its octave before all such
	visits  [lastEdge - joinEdge]float64   // see visitsOf
}

// theTables are made when the first sketch is.
var theTables = sync.OnceValue(func() *tables {
	t := &tables{masks: masksOf()}
	at := 0
	for _, c := range classes {
		for range c.share {
			t.strides[at] = c.stride
			at++
		}
	}
	var octave [octaveEdges]uint64 // 2^(31 + n/64)
	for n := range octave {
		root := new(big.Int).Lsh(big.NewInt(1), uint(31*octaveEdges+n))
		for range 6 { // 64 is 2^6
			root.Sqrt(root)
		}
		octave[n] = root.Uint64()
	}
	for i := range t.edges {
		n := min(i, lastEdge)
		t.edges[i] = uint32(octave[n%octaveEdges] >> (31 - n/octaveEdges))
	}
	last := uint8(0)
	for i := range t.near {
		for last+1 < octaveEdges && octave[last+1] <= uint64(join+i)<<25 {
			last++
		}
		t.near[i] = last
	}
	t.visits = t.visitsOf()
	return t
})

// blocks are the blocks of an index, from one of them on.
type blocks struct {
	state  uint64 // of the word that places a cell in it
	edge   uint32 // where it begins
	stride uint32
}

// blocks are all blocks of the index with this seed. Its lower half chooses the
// first edge.
func (t *tables) blocks(seed uint64) blocks {
	stride := uint64(t.strides[seed>>56])
	back := seed & (1<<32 - 1) * stride >> 32
	return blocks{state: seed + firstBlock*increment%(1<<64), edge: uint32(joinEdge - back), stride: uint32(stride)}
}

// blocksFrom are the blocks from the one on that holds cell at, which is not
// below join.
func (t *tables) blocksFrom(seed, at uint64) blocks {
	b := t.blocks(seed)
	skip := (t.edgeAt(at) - b.edge) / b.stride
	b.edge += skip * b.stride
	b.state += uint64(skip) * increment
	return b
}

// edgeAt is the last edge at or before a cell from join to MaxCells.
func (t *tables) edgeAt(at uint64) uint32 {
	shift := bits.Len64(at) - 7 // leaves 64 to 127
	edge := uint32(joinEdge+shift*octaveEdges) + uint32(t.near[at>>(shift&63)-join])
	for uint64(t.edges[edge+1]) <= at {
		edge++
	}
	return edge
}

// cell is the index's cell in the first of the blocks. It may lie before join,
// in the block that join is in.
func (b blocks) cell(t *tables) uint64 {
	return b.place(uint64(t.edges[b.edge]), uint64(t.edges[b.edge+b.stride]))
}

// place is the index's cell in the first of the blocks, which goes from low to high.
func (b blocks) place(low, high uint64) uint64 { return low + draw(b.state)>>32*(high-low)>>32 }

// next are the blocks without the first, which must not begin beyond lastEdge.
func (b blocks) next() blocks {
	return blocks{state: b.state + increment, edge: b.edge + b.stride, stride: b.stride}
}

// addTo adds a term to those cells of the index that are in cells, which begin with
// cell first. Just the first block may hold its cell before them, and just the last
// one behind. No step waits for the one before, so that the processor draws and
// fetches several cells side by side.
func (b blocks) addTo(t *tables, cells []sum, first uint64, term sum) {
	end := first + uint64(len(cells))
	low, high := uint64(t.edges[b.edge]), uint64(t.edges[b.edge+b.stride])
	if low < first {
		addIn(cells, b.place(low, high)-first, term)
		b = b.next()
		low, high = high, uint64(t.edges[b.edge+b.stride])
	}
	for high <= end {
		cells[b.place(low, high)-first].add(&term)
		b = b.next()
		low, high = high, uint64(t.edges[b.edge+b.stride])
	}
	if low < end {
		addIn(cells, b.place(low, high)-first, term)
	}
}

// addIn adds a term to cell at of cells, if there is one. A branch would be one that
// the processor cannot predict: nothing is added to the first one instead.
func addIn(cells []sum, at uint64, term sum) {
	_, in := bits.Sub64(at, uint64(len(cells)), 0)
	cells[at&-in].add(&sum{term.first & -in, term.second & -in})
}
