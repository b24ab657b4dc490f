package main

import "math"

// count is how often something happened in how many trials.
type count struct{ hits, trials int }

func (c count) rate() float64 { return float64(c.hits) / float64(c.trials) }

// interval is the exact 95 % confidence interval of the rate behind c
// (Clopper and Pearson 1934).
func (c count) interval() (low, high float64) {
	const tail = 0.025
	n := float64(c.trials)
	low, high = 0, 1
	if c.hits > 0 {
		// P(hits or more) grows with the rate; it is tail at the lower end.
		low = bisect(func(p float64) bool { return 1-cumulative(c.hits-1, n, p) > tail })
	}
	if c.hits < c.trials {
		high = bisect(func(p float64) bool { return cumulative(c.hits, n, p) < tail })
	}
	return low, high
}

// bisect finds where above turns true in [0, 1].
func bisect(above func(float64) bool) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		if middle := (low + high) / 2; above(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// cumulative is P(X ≤ k) for a binomial X of n trials.
func cumulative(k int, n, p float64) float64 {
	if p <= 0 {
		return 1
	}
	if p >= 1 {
		if float64(k) >= n {
			return 1
		}
		return 0
	}
	sum := 0.0
	for i := 0; i <= k; i++ {
		sum += math.Exp(choose(n, float64(i)) + float64(i)*math.Log(p) + (n-float64(i))*math.Log1p(-p))
	}
	return min(sum, 1)
}

// choose is the logarithm of the binomial coefficient.
func choose(n, k float64) float64 { return lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1) }

func lgamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// same is the probability of two counts as different as a and b, or more so, if
// their rates are the same. It is Fisher's exact test, two-sided. A small
// probability means that the rates differ. It needs no assumption on the rate.
func same(a, b count) float64 {
	hits, trials := float64(a.hits+b.hits), float64(a.trials+b.trials)
	chance := func(x float64) float64 { // the logarithm of P(a.hits = x)
		return choose(float64(a.trials), x) + choose(float64(b.trials), hits-x) - choose(trials, hits)
	}
	seen := chance(float64(a.hits))
	p := 0.0
	for x := max(0, hits-float64(b.trials)); x <= min(hits, float64(a.trials)); x++ {
		if c := chance(x); c <= seen+1e-9 {
			p += math.Exp(c)
		}
	}
	return min(p, 1)
}

// mean is an average over trials with its 95 % confidence interval.
type mean struct{ value, half float64 }

// meanOf is the mean over n trials of a number whose sum and sum of squares
// are known.
func meanOf(sum, squares float64, n int) mean {
	m := sum / float64(n)
	if n < 2 {
		return mean{m, math.Inf(1)}
	}
	variance := max(0, squares/float64(n)-m*m) * float64(n) / float64(n-1)
	return mean{m, 1.96 * math.Sqrt(variance/float64(n))}
}
