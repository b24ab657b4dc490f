package rateless

import (
	"math"
	"math/bits"
	"slices"
)

// visiting is the probability that a pair belongs to cell j.
func (t *tables) visiting(j int) float64 {
	switch {
	case j == 0:
		return 1
	case j < join:
		return float64(openings[j]) / 256
	}
	return t.visits[t.edgeAt(uint64(j))-joinEdge]
}

// visitsOf is the probability that a pair belongs to a cell from an edge to the
// next, for each edge from that of cell join on. One in a stride of edges begins a
// block, each as likely as the others.
func (t *tables) visitsOf() (visits [lastEdge - joinEdge]float64) {
	for _, c := range classes {
		stride := int(c.stride)
		share := float64(c.share) / 256 / float64(stride)
		sum := 0.0 // over the blocks that an edge's cells may lie in
		inverse := func(edge int) float64 { return 1 / float64(t.edges[edge+stride]-t.edges[edge]) }
		for edge := joinEdge - stride + 1; edge < lastEdge; edge++ {
			sum += inverse(edge)
			if edge >= joinEdge {
				visits[edge-joinEdge] += float64(share * sum) // rounded, so that no processor fuses it
				sum -= inverse(edge + 1 - stride)
			}
		}
	}
	return visits
}

// missing is the logarithm of the probability that a pair does not belong to
// cell j > 0.
func (t *tables) missing(j int) float64 { return math.Log1p(-t.visiting(j)) }

// sample is some cells, or bits of the estimator, that a pair belongs to with nearly the
// same probability. It tells how many of them are equal on both sides, and how many differ.
type sample struct {
	missing float64 // logarithm of the probability that a pair is in none
	chance  float64 // probability that an unequal cell looks equal
	equal   float64
	differ  float64
}

// equalWith is the probability that a cell of s looks equal under d differences. Each of them misses it, or
// they cancel by chance. All are taken as independent of one another. Cells below join are. Beyond it a pair
// that is in a cell is in no other of its block. How many of the differences are in each class varies, and
// the likelihood does not know it. The estimator's bits are not quite independent. d differences flip d/2
// bits, less those that meet in one, and the number does not vary about d/2. That makes estimates of some
// hundred differences better than theory says.
func (s *sample) equalWith(d float64) (equal, missed float64) {
	missed = math.Exp(d * s.missing)
	return missed + (1-missed)*s.chance, missed
}

// least keeps logarithms and quotients of vanishing probabilities finite.
const least = 1e-300

// likelihood is the logarithm of the probability of the samples under d
// differences.
func likelihood(samples []sample, d float64) float64 {
	sum := 0.0
	for i := range samples {
		s := &samples[i]
		equal, _ := s.equalWith(d)
		if s.equal > 0 {
			sum += s.equal * math.Log(max(equal, least))
		}
		if s.differ > 0 {
			sum += s.differ * math.Log(max(1-equal, least))
		}
	}
	return sum
}

// slope is that of likelihood in d.
func slope(samples []sample, d float64) float64 {
	sum := 0.0
	for i := range samples {
		s := &samples[i]
		equal, missed := s.equalWith(d)
		missed *= 1 - s.chance
		share := 1.0 // of the equal cells, those that all differences missed
		if s.chance > 0 {
			share = missed / equal
		}
		sum += s.missing * (s.equal*share - s.differ*missed/max(1-equal, least))
	}
	return sum
}

// likeliest is the d of the largest likelihood. It scans log d coarsely,
// because bits that are equal by chance may make a lesser peak, and then
// searches by the slope. Where nearly every cell differs, a huge d is about as
// likely as any. The result is then the least d within one standard error (half
// a unit of log likelihood). ok tells whether d is bounded above: a huge d is
// less likely by 4.5 units, three standard errors.
func likeliest(samples []sample) (d float64, ok bool) {
	const bottom, step, steps = -2.0, 2.0, 16
	var scan [steps + 1]float64
	peak := 0
	for i := range scan {
		scan[i] = likelihood(samples, math.Exp2(bottom+step*float64(i)))
		if scan[i] > scan[peak] {
			peak = i
		}
	}
	// 14 halvings of some octaves leave a thousandth of an octave.
	search := func(lo, hi float64, below func(d float64) bool) float64 {
		for range 14 {
			if middle := (lo + hi) / 2; below(math.Exp2(middle)) {
				lo = middle
			} else {
				hi = middle
			}
		}
		return (lo + hi) / 2
	}
	around := bottom + step*float64(peak)
	best := search(around-step, around+step, func(d float64) bool { return slope(samples, d) >= 0 })
	most := likelihood(samples, math.Exp2(best))
	bound := most - 0.5
	if scan[steps] > bound {
		first := 0
		for first < peak && scan[first] < bound {
			first++
		}
		best = search(bottom+step*float64(first-1), best, func(d float64) bool { return likelihood(samples, d) < bound })
	}
	return math.Exp2(best), scan[steps] < most-4.5
}

// Estimate returns the likeliest number of differences between the sets of theirs
// and ours. If they are of different lengths, the common bits count. Its standard
// error is 16 % at 50 differences, 13 % at 100, and 11 to 11.6 % from 300 to 10^6. A
// single difference leaves no trace with probability 1/2. ok is false if the
// estimators do not bound d above: it is then a lower bound.
func Estimate(theirs, ours Estimator) (d float64, ok bool) {
	samples := compare(nil, theirs, ours)
	for i := range samples {
		if samples[i].differ > 0 {
			return likeliest(samples)
		}
	}
	return 0, len(samples) > 0
}

// tally counts the cells that were zero before peeling. Its bins have nearly
// the same visiting probability: 64 an octave.
type tally []struct{ zero, total int32 }

// bin is the number of the bin of cell j.
func bin(j int) int {
	octave := max(0, bits.Len(uint(j))-7)
	return octave*64 + j>>octave
}

// add counts cell j, which must be the next.
func (t *tally) add(j int, zero bool) {
	at := bin(j)
	if at == len(*t) {
		*t = append(*t, struct{ zero, total int32 }{})
	}
	(*t)[at].total++
	if zero {
		(*t)[at].zero++
	}
}

// AddEstimators lets Estimate judge by the estimators of both sets too.
func (d *Decoder) AddEstimators(theirs, ours Estimator) {
	d.estimators = [2]Estimator{slices.Clone(theirs), slices.Clone(ours)}
}

// Estimate returns the likeliest number of all differences, those found included. It
// uses the cells received so far, and the estimators given with AddEstimators. With
// as many cells as differences, its relative standard error is 2.5/√d. While all
// cells differ and there are no estimators it is a lower bound.
func (d *Decoder) Estimate() float64 {
	found := float64(d.live)
	if len(d.cells) > 0 && d.nonzero == 0 {
		return found
	}
	var samples []sample
	at := 0
	for _, b := range d.seen {
		if at > 0 {
			samples = append(samples, sample{
				missing: d.words.tables.missing(at + int(b.total-1)/2),
				equal:   float64(b.zero),
				differ:  float64(b.total - b.zero),
			})
		}
		at += int(b.total)
	}
	samples = compare(samples, d.estimators[0], d.estimators[1])
	if len(d.cells) > 0 {
		found++ // something is left
	}
	if len(samples) == 0 {
		return found
	}
	all, _ := likeliest(samples)
	return max(found, all)
}

// Estimator is a set's marks. Two sets' Estimators tell how many differences lie
// between them.
//
// The bits are in octaves: half of all indices have their bit in the first, a
// quarter in the second, and so on. The last two have equally many. Each pair flips
// its index's bit or leaves it, as the lowest bit of its checksum says. That bit is
// one of a hash. What both sets hold cancels, and a difference of either kind flips
// with probability 1/2. The octaves where some bits hold no difference and some
// hold one or more tell the number.
//
// Why single bits: with k of them to a place, a hit is seen in 1 − 2^−k of the
// cases, but there are k times fewer places. A single bit carries π²/24 = 0.41
// units of Fisher information about log d to the factor e in d. It carries
// 0.37 in a pair, 0.34 among three and 0.20 in a byte.
type Estimator []byte

const (
	octaves  = 16
	anOctave = 128 // bits
)

// flip adds the lowest bit of a checksum to the bit that a hash of the index chooses.
// Taking it away is the same. The lowest bit of hash does not count.
func (e Estimator) flip(hash uint64, v Checksum) {
	octave := min(bits.LeadingZeros64(hash), octaves-1)
	at := octave*anOctave + int(hash>>1%anOctave)
	e[at/8] ^= byte(v&1) << (at % 8)
}

// unhit is the logarithm of the probability that an index has not a certain bit
// of an octave.
func unhit(octave int) float64 {
	share := math.Ldexp(1, -min(octave+1, octaves-1))
	return math.Log1p(-share / anOctave)
}

// compare counts the bits that are equal and that differ, octave by octave.
func compare(samples []sample, theirs, ours Estimator) []sample {
	const size = anOctave / 8
	n := min(len(theirs), len(ours), EstimatorSize)
	for at := 0; at < n; at += size {
		end := min(at+size, n)
		differ := 0
		for i := at; i < end; i++ {
			differ += bits.OnesCount8(theirs[i] ^ ours[i])
		}
		samples = append(samples, sample{
			missing: unhit(at / size),
			chance:  0.5,
			equal:   float64(8*(end-at) - differ),
			differ:  float64(differ),
		})
	}
	return samples
}
