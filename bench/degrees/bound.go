package main

import "math"

// collision is the least probability that two of d indices belong to the same
// of the first n cells, whatever the law, if cell 0 holds every pair and each
// index draws its cells by itself from the one law. There are 2^(n−1) sets of
// cells to draw; two draws are alike least often if all sets are equally likely
// (the birthday problem). Where two are alike, neither is decoded.
func collision(d, n int) float64 {
	distinct := 1.0
	for i := range d {
		distinct *= max(0, 1-float64(i)*math.Exp2(-float64(n-1)))
	}
	return 1 - distinct
}

// least is the smallest n for which fails(n) is at most 1 %.
func least(fails func(n int) float64) int {
	n := 1
	for fails(n) > 0.01 {
		n++
	}
	return n
}

// The differences for which the bound says something worth a table.
const (
	boundFrom, boundTo = 2, 10
	boundTrials        = 20_000
)

// pairBound is what two differences allow: the chances that n cells do not
// suffice.
type pairBound struct {
	Cells   int     `json:"cells"`
	AnyLaw  float64 `json:"any_law_at_least"`
	Shipped float64 `json:"blocks"`
	Joined  float64 `json:"joined"`
	Regular float64 `json:"regular"`
}

// pairs tabulates them until the shipped law is safely below 1 %.
func pairs() (out []pairBound) {
	for n := 3; n <= least(shipped.alike)+3; n++ {
		out = append(out, pairBound{n, collision(2, n), shipped.alike(n), joined.alike(n), regular.alike(n)})
	}
	return out
}

// few compares the shipped law with the best single exponent at few
// differences. Percentiles are in cells a difference.
type few struct {
	Differences int     `json:"differences"`
	AnyLaw      float64 `json:"any_law_p99_at_least"`
	Shipped     float64 `json:"blocks_p99"`
	ShippedMean float64 `json:"blocks_mean"`
	Alpha       float64 `json:"best_alpha"` // that with the least 99th percentile, and of these with the least mean
	Best        float64 `json:"best_alpha_p99"`
	BestMean    float64 `json:"best_alpha_mean"`
	Trials      int     `json:"trials"`
}

// sweep tries the exponents 0.05, 0.10 … 1.00.
func (r *runner) sweep() (out []few) {
	trials := max(r.times(boundTrials), 100)
	for d := boundFrom; d <= boundTo; d++ {
		any := least(func(n int) float64 { return collision(d, n) })
		try := func(name string, law law) summary {
			s := summarize(r.simulate(name, law, d, trials), d)
			if d == 2 { // exactly, where a sample may be a cell off
				s.P99 = float64(least(law.alike)) / 2
			}
			return s
		}
		ours := try(lawShipped, shipped)
		o := few{
			Differences: d, AnyLaw: float64(any) / float64(d),
			Shipped: ours.P99, ShippedMean: ours.Mean, Trials: trials,
		}
		for hundredths := 5; hundredths <= 100; hundredths += 5 {
			alpha := float64(hundredths) / 100
			s := try("one exponent", alone(alpha))
			if o.Alpha == 0 || s.P99 < o.Best || s.P99 == o.Best && s.Mean < o.BestMean {
				o.Alpha, o.Best, o.BestMean = alpha, s.P99, s.Mean
			}
		}
		out = append(out, o)
	}
	return out
}
