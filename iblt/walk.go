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
const MaxCells = 1<<31 - 1

// walker visits the cells that an index belongs to, in order. Both parts of
// the walk have a random stream of their own, so that the part from cell 64 on
// can be walked without the opening.
type walker struct {
	at    uint64 // the present cell
	state uint64 // of the random stream
	tail  uint64 // the stream's state for the walk from cell join on
	law   uint8  // the present law: opening, or that of the class
	class uint8
}

// opening is the law below cell join; the classes follow.
const opening = 0

// seed is the keyed hash of an index that its walk follows from.
func (w *words) seed(k Index) uint64 {
	return fold(fold(uint64(k)^w.walk[0], w.walk[1])^w.walk[2], w.walk[3])
}

// class is the law of the walk from cell join on.
func class(seed uint64) uint8 {
	percent, _ := bits.Mul64(seed, 100)
	switch {
	case percent < shares[0]:
		return 1
	case percent < shares[1]:
		return 2
	default:
		return 3
	}
}

// start stands at cell 0, which holds every pair.
func (w *words) start(k Index) walker {
	seed := w.seed(k)
	return walker{state: seed, tail: seed ^ w.tail, class: class(seed)}
}

// startAt stands at the first cell of index k that is not below from.
func (w *words) startAt(k Index, from uint64) walker {
	walk := w.start(k)
	if from >= join {
		walk.cross(w.laws)
	}
	walk.forward(w.laws, from)
	return walk
}

// cross leaves the opening: the next cell is drawn by the class's law as if
// from cell join − 1. The step law has no memory, so that it does not matter
// whether the walk was there.
func (x *walker) cross(laws *laws) {
	law := &laws[x.class]
	x.law, x.state = x.class, x.tail+increment
	x.at = after(join-1, law.c, law.power(draw(x.state)))
}

// forward goes on to the first cell that is not below from.
func (x *walker) forward(laws *laws, from uint64) {
	for x.at < from {
		law, at, state, end := &laws[x.law], x.at, x.state, from
		if x.law == opening {
			end = min(from, join)
		}
		for at < end {
			state += increment
			at = after(at, law.c, law.power(draw(state)))
		}
		x.at, x.state = at, state
		if x.law == opening && at >= join {
			x.cross(laws)
		}
	}
}

// fill writes the cells from the present one on that are below end to cells,
// as many as fit, and returns how many. The walk stands at the next then.
func (x *walker) fill(laws *laws, cells []uint32, end uint64) int {
	n := 0
	for x.at < end && n < len(cells) {
		law, at, state, end := &laws[x.law], x.at, x.state, end
		if x.law == opening {
			end = min(end, join)
		}
		for at < end && n < len(cells) {
			cells[n] = uint32(at)
			n++
			state += increment
			at = after(at, law.c, law.power(draw(state)))
		}
		x.at, x.state = at, state
		if x.law == opening && at >= join {
			x.cross(laws)
		}
	}
	return n
}

// batch is how many cells of a walk are drawn before they are touched: drawing
// them apart lets the processor fetch the cells side by side. A pair has some
// 22 cells below 2^14.
const batch = 32

// increment and mixer are the constants of wyrand (Wang Yi 2019), the random
// stream of a walk.
const (
	increment = 0xa0761d6478bd642f
	mixer     = 0xe7037ed1a0b428db
)

// draw is the stream's output, never 0. The state goes on by increment before
// each draw.
func draw(state uint64) uint64 { return fold(state, state^mixer) | 1 }

// power returns u^−α in units of 2^−32, for u = random/2^64. u is taken apart
// into mantissa · 2^−e with mantissa in [1, 2), and each factor has a table; a
// table of u itself would be wrong near zero, where the far steps come from.
func (l *law) power(random uint64) uint64 {
	zeros := bits.LeadingZeros64(random)
	mantissa := random << (zeros & 63) << 1 // without its leading one
	k := mantissa >> (64 - mantissaBits)
	low := uint64(l.mantissa[k])
	part := (low - uint64(l.mantissa[k+1])) * (mantissa << mantissaBits >> 32)
	power, _ := bits.Mul64(low<<32-part, l.exponent[zeros])
	return power
}

// after is the cell that follows cell i: i + ⌈(i + c)·(u^−α − 1)⌉. From any
// earlier cell, cell j is visited with probability 1 − ((j−1+c)/(j+c))^(1/α),
// close to 1/(1 + α·j).
//
// i is below 2^31 and the power below 2^32: the product, in units of 2^−48,
// stays below 2^111. Rounding down and adding one is rounding up, and makes
// each step at least one.
func after(i, c, power uint64) uint64 {
	hi, lo := bits.Mul64(i<<16+c, max(power, 1<<32)-1<<32)
	return i + (hi<<16 | lo>>48) + 1
}
