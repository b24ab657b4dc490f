package iblt

import "math/bits"

// WalkVersion names the walk and the check hash. Sketches of two versions
// cannot be compared; peers refuse one another's by it.
const WalkVersion = 1

// join is where the opening walk with α = 1/2 ends and that of the class
// begins. Classes alone decode small differences badly (99th percentile 3.4
// cells a difference at d = 256), the opening alone large ones (1.36 cells a
// difference); joined here they have the better of both.
const join = 64

// MaxCells bounds the positions of cells: a sketch, and the stream of cells
// that a Decoder takes, end there.
const MaxCells = 1 << 31

// walker visits the cells that an index belongs to, in order. Both parts of
// the walk have a random stream of their own, so that the part from cell 64 on
// can be walked without the opening.
type walker struct {
	at    uint64 // the present cell
	state uint64 // of the random stream
	law   *law
	tail  uint64 // the stream's state for the walk from cell join on
	class *law
}

// seed is the keyed hash of an index that its walk follows from.
func (w *words) seed(k Index) uint64 {
	return fold(fold(uint64(k)^w.walk[0], w.walk[1])^w.walk[2], w.walk[3])
}

// class is the law of the walk from cell join on.
func class(laws *[len(alphas)]law, seed uint64) *law {
	percent, _ := bits.Mul64(seed, 100)
	switch {
	case percent < shares[0]:
		return &laws[1]
	case percent < shares[1]:
		return &laws[2]
	default:
		return &laws[3]
	}
}

// start stands at cell 0, which holds every pair.
func (w *words) start(laws *[len(alphas)]law, k Index) walker {
	seed := w.seed(k)
	return walker{state: seed, law: &laws[0], tail: seed ^ w.tail, class: class(laws, seed)}
}

// startAt stands at the first cell of index k that is not below from.
func (w *words) startAt(laws *[len(alphas)]law, k Index, from uint64) walker {
	walk := w.start(laws, k)
	if from >= join {
		walk.cross()
	}
	for walk.at < from {
		walk.next()
	}
	return walk
}

// cross leaves the opening: the next cell is drawn by the class's law as if
// from cell join − 1. The step law has no memory, so that it does not matter
// whether the walk was there.
func (x *walker) cross() {
	x.law, x.state = x.class, x.tail
	x.at = x.step(join - 1)
}

// next goes on to the next cell. It must not be called at or beyond MaxCells.
func (x *walker) next() {
	at := x.step(x.at)
	if x.at < join && at >= join {
		x.cross()
		return
	}
	x.at = at
}

// step draws the cell after i: i + ⌈(i + c)·(u^−α − 1)⌉ for u uniform in
// (0, 1]. From any earlier cell, a cell j is visited with probability
// 1 − ((j−1+c)/(j+c))^(1/α), close to 1/(1 + α·j).
func (x *walker) step(i uint64) uint64 {
	// wyrand (Wang Yi 2019): an odd increment, then a folded product.
	x.state += 0xa0761d6478bd642f
	random := fold(x.state, x.state^0xe7037ed1a0b428db) | 1

	// u = mantissa · 2^−e, with mantissa in [1, 2). Tables of u itself would
	// be wrong near zero, where the far steps come from.
	zeros := bits.LeadingZeros64(random)
	mantissa := random << zeros << 1 // without its leading one
	k := mantissa >> (64 - mantissaBits)
	low := x.law.mantissa[k]
	part, _ := bits.Mul64(low-x.law.mantissa[k+1], mantissa<<mantissaBits)
	power, _ := bits.Mul64(low-part, x.law.exponent[zeros+1]) // u^−α in units of 2^−32
	if power < 1<<32 {
		power = 1 << 32 // u next to 1, rounded below it
	}
	// i is below 2^31 and the power below 2^32: the product, in units of
	// 2^−48, stays below 2^111. Rounding down and adding one is rounding up,
	// and makes each step at least one.
	hi, lo := bits.Mul64(i<<16+x.law.c, power-1<<32)
	return i + (hi<<16 | lo>>48) + 1
}
