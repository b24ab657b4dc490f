package iblt

import "math"

// Threshold is c_k of the paper's section 2.4, in cells a key, for the configured
// Hashes or Degrees. With more than c_k·n cells, n keys can be listed with high
// probability; with fewer they cannot. The paper's Table 1 has k = 3 to 7. It is
// NaN for fewer than 3 hashes, for which the transition is not sharp.
func (c TableConfig) Threshold() float64 {
	degrees := c.Degrees
	if len(degrees) == 0 {
		degrees = []Degree{{Hashes: c.Hashes, Share: 1}}
	}
	for _, d := range degrees {
		if d.Hashes < 3 {
			return math.NaN()
		}
	}
	return threshold(degrees)
}

// Capacity is the paper's design threshold t = m/c_k: about as many keys as
// this can be listed. ConfigFor says how many cells less uncertainty takes.
func (c TableConfig) Capacity() int {
	if t := c.Threshold(); t > 0 {
		return int(float64(c.Cells) / t)
	}
	return 0
}

// threshold computes 1/sup{α : 1 − e^(−α·L'(x)) < x for all x in (0, 1)} with
// L'(x) = Σ share·k·x^(k−1). For one k this is the paper's formula. Solved for
// α, the condition is α < −ln(1 − x)/L'(x). So the supremum is the least value
// of the right side.
func threshold(degrees []Degree) float64 {
	total := 0.0
	for _, d := range degrees {
		total += float64(d.Share)
	}
	bound := func(x float64) float64 {
		sum := 0.0
		for _, d := range degrees {
			sum += float64(d.Share) / total * float64(d.Hashes) * math.Pow(x, float64(d.Hashes-1))
		}
		return -math.Log1p(-x) / sum
	}
	// A mix of degrees can have two minima: look everywhere, then closer.
	const steps = 1000
	best := 1.0 / steps
	for i := 2; i < steps; i++ {
		if x := float64(i) / steps; bound(x) < bound(best) {
			best = x
		}
	}
	low, high := best-1.0/steps, best+1.0/steps
	for high-low > 1e-12 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if bound(a) < bound(b) {
			high = b
		} else {
			low = a
		}
	}
	return 1 / bound(low)
}
