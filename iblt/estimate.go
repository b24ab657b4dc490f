package iblt

import "math"

// Probes are the low bytes of the check fields of some cells of a sketch: of
// the first 16, then of 16 an octave. Two sets' Probes tell how many
// differences lie between them.
type Probes []byte

// MaxProbes is the largest number of Probes, and their size in bytes.
const MaxProbes = 256

// probesAnOctave is 16: the standard error is then 16 % (theory; 4 an octave
// would give 32 %).
const probesAnOctave = 16

// probeAt is the position of probe i: 0 to 15, then 16 steps to each doubling.
func probeAt(i int) int {
	octave := i / probesAnOctave
	if octave == 0 {
		return i
	}
	return (probesAnOctave + i%probesAnOctave) << (octave - 1)
}

// Probes returns the probes of the cells that the sketch holds. It panics if
// the sketch does not begin at cell 0.
func (s *Sketch) Probes() Probes {
	if s.from != 0 {
		panic("iblt: Probes of a window")
	}
	var p Probes
	for i := 0; i < MaxProbes && probeAt(i) < len(s.cells); i++ {
		p = append(p, byte(s.cells[probeAt(i)].Check))
	}
	return p
}

// visiting is the probability that a pair belongs to cell j.
func visiting(j int) float64 {
	law := func(alpha float64) float64 {
		c := (1 + 1/alpha) / 2
		x := float64(j)
		return -math.Expm1(math.Log1p(-1/(x+c)) / alpha)
	}
	switch {
	case j == 0:
		return 1
	case j < join:
		return law(0.50)
	}
	return 0.18*law(0.11) + 0.56*law(0.68) + 0.26*law(0.82)
}

// sample tells how many of total cells with a like visiting probability are
// equal on both sides.
type sample struct {
	visiting     float64
	equal, total float64
}

// likeliest is the d that makes the samples most likely, if unequal cells look
// equal with probability chance. saturated tells that no larger d would be
// less likely.
func likeliest(samples []sample, chance float64) (d float64, saturated bool) {
	likelihood := func(d float64) float64 {
		sum := 0.0
		for _, s := range samples {
			if s.visiting >= 1 {
				continue
			}
			zero := math.Exp(d * math.Log1p(-s.visiting))
			looks := zero + (1-zero)*chance
			if s.equal > 0 {
				sum += s.equal * math.Log(looks)
			}
			if s.total > s.equal {
				sum += (s.total - s.equal) * math.Log(max(1-looks, 1e-300))
			}
		}
		return sum
	}
	// The likelihood has one peak in log d: a coarse search, then a fine one.
	const coarse, top = 0.125, 40.0
	best, at := math.Inf(-1), 0.0
	for x := -4.0; x <= top; x += coarse {
		if l := likelihood(math.Exp2(x)); l > best+1e-9 {
			best, at = l, x
		}
	}
	lo, hi := at-coarse, at+coarse
	for range 40 {
		a, b := lo+(hi-lo)*0.382, lo+(hi-lo)*0.618
		if likelihood(math.Exp2(a)) < likelihood(math.Exp2(b)) {
			lo = a
		} else {
			hi = b
		}
	}
	d = math.Exp2((lo + hi) / 2)
	return d, false
}

// Estimate returns the likeliest number of differences between the sets that
// theirs and ours were taken of. It is false if nearly all probes differ: d is
// then a lower bound.
func Estimate(theirs, ours Probes) (d float64, ok bool) {
	n := min(len(theirs), len(ours), MaxProbes)
	samples := make([]sample, 0, n)
	equal, tail := 0, 0
	for i := range n {
		s := sample{visiting: visiting(probeAt(i)), total: 1}
		if theirs[i] == ours[i] {
			s.equal = 1
			equal++
			if i >= n-probesAnOctave {
				tail++
			}
		}
		samples = append(samples, s)
	}
	if n == 0 {
		return 0, false
	}
	if equal == n {
		return 0, true
	}
	d, _ = likeliest(samples, 1.0/256)
	return d, tail >= 2
}

// tally counts the cells that were zero before peeling, by position.
type tally struct {
	bins [64 * 32]struct{ zero, total int32 }
}

// bin has 64 bins an octave, so that the cells of one have nearly the same
// visiting probability.
func bin(j int) int {
	octave := 0
	for j>>octave >= 128 {
		octave++
	}
	return octave*64 + j>>octave
}

func (t *tally) add(j int, zero bool) {
	b := &t.bins[bin(j)]
	b.total++
	if zero {
		b.zero++
	}
}

// Estimate returns the number of differences in all, judged from the cells that
// have come and the differences found. Once there are as many cells as
// differences, its standard error is a few percent.
func (d *Decoder) Estimate() float64 {
	found := float64(len(d.found))
	if d.nonzero == 0 {
		return found
	}
	var samples []sample
	for j := 0; j < len(d.cells); {
		b := d.seen.bins[bin(j)]
		middle := j + int(b.total)/2
		samples = append(samples, sample{visiting: visiting(middle), equal: float64(b.zero), total: float64(b.total)})
		j += int(b.total)
	}
	estimate, _ := likeliest(samples, 0)
	return max(estimate, found+1)
}
