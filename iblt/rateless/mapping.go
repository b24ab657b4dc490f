package rateless

import "math/bits"

// A mapping has three parts. Below cell turn all indices follow one law, below
// cell join another, and from there on each that of its class. Classes alone
// decode small differences badly (99th percentile 2.2 cells a difference at
// d = 256), one law alone large ones (1.36 cells a difference); joined they
// have the better of both. A denser beginning parts the two or three pairs that
// would share all of few cells. The numbers come from a search (docs/DEGREES.md).
const (
	turn = 20
	join = 68
)

// mapping visits the cells that an index belongs to, in order. The part from
// cell join on has a random stream of its own, so that it can be drawn without
// the opening.
type mapping struct {
	at    uint64 // the present cell
	state uint64 // of the random stream
	tail  uint64 // the stream's state for the mapping from cell join on
	law   uint8  // the present law: one of the opening's, or that of the class
	class uint8
}

// openings end at these cells; the laws of the classes follow theirs.
var openings = [...]uint64{turn, join}

// seed is the keyed hash of an index that its mapping follows from.
func (w *words) seed(k Index) uint64 {
	return fold(fold(uint64(k)^w.mapping[0], w.mapping[1])^w.mapping[2], w.mapping[3])
}

// class is the law of the mapping from cell join on.
func class(seed uint64) uint8 {
	percent, _ := bits.Mul64(seed, 100)
	switch {
	case percent < shares[0]:
		return uint8(len(openings))
	case percent < shares[1]:
		return uint8(len(openings)) + 1
	default:
		return uint8(len(openings)) + 2
	}
}

// start stands at cell 0, which holds every pair.
func (w *words) start(k Index) mapping {
	seed := w.seed(k)
	return mapping{state: seed, tail: seed ^ w.tail, class: class(seed)}
}

// startAt stands at the first cell of index k that is not below from.
func (w *words) startAt(k Index, from uint64) mapping {
	m := w.start(k)
	if from >= join {
		m.law, m.at = uint8(len(openings))-1, join
		m.cross(w.laws)
	}
	m.forward(w.laws, from)
	return m
}

// cross leaves an opening that the mapping has passed the end of: the next cell is
// drawn by the law that follows, as if from the opening's last cell. The step
// law has no memory, so that it does not matter whether the mapping was there.
func (m *mapping) cross(laws *laws) {
	for int(m.law) < len(openings) && m.at >= openings[m.law] {
		last := openings[m.law] - 1
		if m.law++; int(m.law) == len(openings) {
			m.law, m.state = m.class, m.tail
		}
		m.state += increment
		law := &laws[m.law]
		m.at = after(last, law.c, law.power(draw(m.state)))
	}
}

// part is where the mapping's present law ends, or end if that comes before.
func (m *mapping) part(end uint64) uint64 {
	if int(m.law) < len(openings) {
		return min(end, openings[m.law])
	}
	return end
}

// forward goes on to the first cell that is not below from.
func (m *mapping) forward(laws *laws, from uint64) {
	for m.at < from {
		law, at, state, end := &laws[m.law], m.at, m.state, m.part(from)
		for at < end {
			state += increment
			at = after(at, law.c, law.power(draw(state)))
		}
		m.at, m.state = at, state
		m.cross(laws)
	}
}

// fill writes the cells from the present one on that are below end to cells,
// as many as fit, and returns how many. The mapping stands at the next then.
func (m *mapping) fill(laws *laws, cells []uint32, end uint64) int {
	n := 0
	for m.at < end && n < len(cells) {
		law, at, state, end := &laws[m.law], m.at, m.state, m.part(end)
		for at < end && n < len(cells) {
			cells[n] = uint32(at)
			n++
			state += increment
			at = after(at, law.c, law.power(draw(state)))
		}
		m.at, m.state = at, state
		m.cross(laws)
	}
	return n
}

// batch is how many cells of a mapping are drawn before they are touched: drawing
// them apart lets the processor fetch the cells side by side. A pair has some
// 22 cells below 2^14.
const batch = 32

// increment and mixer are the constants of wyrand (Wang Yi 2019), the random
// stream of a mapping.
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
// i is below 2^31, c and the power are in units of 2^−32, and with them the
// product in units of 2^−64. Rounding down and adding one is rounding up, and
// makes each step at least one.
func after(i, c, power uint64) uint64 {
	step, _ := bits.Mul64(i<<32+c, max(power, 1<<32)-1<<32)
	return i + step + 1
}
