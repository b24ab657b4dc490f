package main

import "math"

// steps is the family of laws that draw each cell from the one before: an index
// belongs to cell 0, from there on follows the exponents of the openings, which
// are the same for all indices, and from where the last of them ends with that
// of its class.
type steps struct {
	openings []opening // at least one; the first ends at cell 1 or later
	classes  []part    // their shares add up to 1
}

// opening is the part of a mapping below cell end.
type opening struct {
	end   int
	alpha float64
}

// part is a part of all indices.
type part struct{ share, alpha float64 }

// alone is the mapping with one exponent for all.
func alone(alpha float64) *steps { return &steps{[]opening{{1, alpha}}, []part{{1, alpha}}} }

// visiting is the probability that a mapping with exponent alpha visits cell j > 0.
// It does not depend on the other cells that the mapping visits: from cell i, the
// next lies beyond j with the probability ((i + c)/(j + c))^(1/α), so that for a
// mapping which has last stood at i and passed j − 1 the factor of i cancels:
//
//	P(stops at j | passed j − 1) = 1 − ((j − 1 + c)/(j + c))^(1/α)
//
// Visits to different cells are therefore independent; the class of an index is
// what its cells from the last opening's end on have in common.
func visiting(alpha float64, j int) float64 {
	c := (1 + 1/alpha) / 2
	return 1 - math.Pow((float64(j-1)+c)/(float64(j)+c), 1/alpha)
}

// visits is the probability that a mapping whose class has the exponent alpha
// visits cell j > 0.
func (s *steps) visits(alpha float64, j int) float64 {
	for _, o := range s.openings {
		if j < o.end {
			return visiting(o.alpha, j)
		}
	}
	return visiting(alpha, j)
}

func (s *steps) held(j int) (p float64) {
	for _, c := range s.classes {
		p += c.share * s.visits(c.alpha, j)
	}
	return p
}

// alike is exact, because visits to different cells are independent (see visiting).
func (s *steps) alike(n int) float64 {
	sum := 0.0
	for _, a := range s.classes {
		for _, b := range s.classes {
			product := a.share * b.share
			for j := 1; j < n; j++ {
				p, q := s.visits(a.alpha, j), s.visits(b.alpha, j)
				product *= p*q + (1-p)*(1-q)
			}
			sum += product
		}
	}
	return sum
}

func (s *steps) cells(dst []int32, trial uint64, k, limit int) []int32 {
	for w := s.start(trial, k); w.at < limit; w.step() {
		dst = append(dst, int32(w.at))
	}
	return dst
}

// walk visits the cells of a key in order, in floating point. Only figures
// depend on it, never what two peers must agree on.
type walk struct {
	at     int     // the present cell
	alpha  float64 // of the present law
	end    int     // where it ends
	next   []opening
	class  float64 // α after the last opening
	random stream
}

// start stands at cell 0 of key number k of a trial.
func (s *steps) start(trial uint64, k int) walk {
	first := s.openings[0]
	w := walk{alpha: first.alpha, end: first.end, next: s.openings[1:], random: stream(seedOf(trial, uint64(k)))}
	u := w.random.unit()
	for _, c := range s.classes {
		w.class = c.alpha
		if u -= c.share; u <= 0 {
			break
		}
	}
	return w
}

// step goes to the next cell. What would pass the last cell of an opening is
// dropped, and a step of the law that follows is drawn from there: a step has no
// memory, so that it does not matter whether the mapping was there.
func (w *walk) step() {
	for w.at = w.after(); w.at >= w.end; w.at = w.after() {
		w.at = w.end - 1
		w.alpha, w.end = w.class, math.MaxInt
		if len(w.next) > 0 {
			w.alpha, w.end, w.next = w.next[0].alpha, w.next[0].end, w.next[1:]
		}
	}
}

// beyond is further than any cell that a trial looks at.
const beyond = 1 << 40

// after draws the cell that follows: i + ⌈(i + c)·(u^−α − 1)⌉, at least i + 1.
func (w *walk) after() int {
	c := (1 + 1/w.alpha) / 2
	step := (float64(w.at) + c) * (math.Exp(-w.alpha*math.Log(w.random.unit())) - 1)
	return w.at + int(min(max(math.Ceil(step), 1), beyond))
}
