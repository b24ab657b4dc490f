package main

import "math"

// mapping visits the cells of a key in order, by a law in floating point. Only
// figures depend on it, never what two peers must agree on.
type mapping struct {
	at     int     // the present cell
	alpha  float64 // of the present law
	end    int     // where it ends
	next   []opening
	class  float64 // α after the last opening
	random stream
}

// stream is a pseudo-random sequence, SplitMix64 (Steele, Lea, Flood 2014).
type stream uint64

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit is uniform in (0, 1], in steps of 2^−53.
func (s *stream) unit() float64 { return float64(s.next()>>11+1) * 0x1p-53 }

// seedOf makes one seed of several numbers.
func seedOf(numbers ...uint64) uint64 {
	var s stream
	for _, n := range numbers {
		s = stream(s.next() ^ n)
	}
	return s.next()
}

// start stands at cell 0 of key number k of a trial.
func (d *design) start(trial uint64, k int) mapping {
	first := d.openings[0]
	w := mapping{alpha: first.alpha, end: first.end, next: d.openings[1:], random: stream(seedOf(trial, uint64(k)))}
	u := w.random.unit()
	for _, c := range d.classes {
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
func (w *mapping) step() {
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
func (w *mapping) after() int {
	c := (1 + 1/w.alpha) / 2
	step := (float64(w.at) + c) * (math.Exp(-w.alpha*math.Log(w.random.unit())) - 1)
	return w.at + int(min(max(math.Ceil(step), 1), beyond))
}
