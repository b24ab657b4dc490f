package iblt

import (
	"math"
	"sync"
)

// visiting is the probability that a pair belongs to cell j.
func visiting(j int) float64 {
	if j == 0 {
		return 1
	}
	if j < join {
		return visitingBy(alphas[opening], j)
	}
	sum, below := 0.0, uint64(0)
	for class, upTo := range shares {
		sum += float64(upTo-below) / 100 * visitingBy(alphas[class+1], j)
		below = upTo
	}
	return sum
}

// visitingBy is 1 − ((j−1+c)/(j+c))^(1/α), with c = (1 + 1/α)/2.
func visitingBy(hundredths uint64, j int) float64 {
	alpha := float64(hundredths) / 100
	c := (1 + 1/alpha) / 2
	return -math.Expm1(math.Log1p(-1/(float64(j)+c)) / alpha)
}

// missing is the logarithm of the probability that a pair does not belong to
// cell j > 0.
func missing(j int) float64 { return math.Log1p(-visiting(j)) }

// probesMissing is missing at the positions of the probes from the second on.
var probesMissing = sync.OnceValue(func() *[MaxProbes]float64 {
	var out [MaxProbes]float64
	for i := 1; i < MaxProbes; i++ {
		out[i] = missing(probeAt(i))
	}
	return &out
})

// sample tells how many of some cells with nearly the same visiting
// probability are equal on both sides, and how many differ.
type sample struct {
	missing float64 // logarithm of the probability that a pair is in none
	chance  float64 // probability that an unequal cell looks equal
	equal   float64
	differ  float64
}

// equalWith is the probability that a cell of s looks equal under d
// differences: each of them misses it, or chance has it so. That the cells of
// one walk are not independent is neglected; it costs the estimate some
// precision.
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

// likeliest is the d of the largest likelihood: a coarse scan of log d, because
// a byte that is equal by chance may make a lesser peak, then a search by the
// slope. Where nearly every cell differs, a huge d is about as likely as any;
// then it is the least d within one standard error (half a unit of log
// likelihood).
func likeliest(samples []sample) float64 {
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
	bound := likelihood(samples, math.Exp2(best)) - 0.5
	if scan[steps] > bound {
		first := 0
		for first < peak && scan[first] < bound {
			first++
		}
		best = search(bottom+step*float64(first-1), best, func(d float64) bool { return likelihood(samples, d) < bound })
	}
	return math.Exp2(best)
}

// probeSamples compares two sets' probes from position from on.
func probeSamples(samples []sample, theirs, ours Probes, from int) []sample {
	for i := range min(len(theirs), len(ours), MaxProbes) {
		if i == 0 || probeAt(i) < from {
			continue // cell 0 holds every pair: it tells nothing about their number
		}
		s := sample{missing: probesMissing()[i], chance: 1.0 / 256}
		if theirs[i] == ours[i] {
			s.equal = 1
		} else {
			s.differ = 1
		}
		samples = append(samples, s)
	}
	return samples
}

// Estimate returns the likeliest number of differences between the sets that
// theirs and ours were taken of; if they are of different lengths, the common
// ones count. Its standard error is 16 to 19 % from some tens of differences
// to 10^4, and 27 % at 10^5. ok is false if there are no probes, or too few of the last are
// equal to say how many differences there are: d is then a lower bound.
func Estimate(theirs, ours Probes) (d float64, ok bool) {
	samples := probeSamples(nil, theirs, ours, 0)
	if len(samples) == 0 {
		return 0, false
	}
	differ, last := 0.0, 0.0
	for i, s := range samples {
		differ += s.differ
		if i >= len(samples)-anOctave {
			last += s.equal
		}
	}
	if differ == 0 && theirs[0] == ours[0] {
		return 0, true
	}
	// One of 16 may look equal by chance (6 %); two seldom do (0.2 %).
	return likeliest(samples), last >= 2
}

// tally counts the cells that were zero before peeling, in bins of nearly the
// same visiting probability: 64 an octave.
type tally []struct{ zero, total int32 }

// bin is the number of the bin of cell j.
func bin(j int) int {
	octave := 0
	for j>>octave >= 128 {
		octave++
	}
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

// AddProbes lets Estimate judge by the probes of both sets too, where no cells
// have come yet.
func (d *Decoder) AddProbes(theirs, ours Probes) {
	d.probes = [2]Probes{append(Probes(nil), theirs...), append(Probes(nil), ours...)}
}

// Estimate returns the likeliest number of all differences, those found
// included, judged from the cells that have come (and the probes given with
// AddProbes). When as many cells as differences have come, its relative
// standard error is 2.5/√d. While all cells differ and there are no probes it is
// a lower bound.
func (d *Decoder) Estimate() float64 {
	found := float64(len(d.found))
	if len(d.cells) > 0 && d.nonzero == 0 {
		return found
	}
	var samples []sample
	at := 0
	for _, b := range d.seen {
		if at > 0 {
			samples = append(samples, sample{
				missing: missing(at + int(b.total-1)/2),
				equal:   float64(b.zero),
				differ:  float64(b.total - b.zero),
			})
		}
		at += int(b.total)
	}
	samples = probeSamples(samples, d.probes[0], d.probes[1], len(d.cells))
	if len(d.cells) > 0 {
		found++ // something is left
	}
	if len(samples) == 0 {
		return found
	}
	return max(found, likeliest(samples))
}
