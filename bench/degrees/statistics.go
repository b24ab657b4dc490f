package main

import (
	"math"
	"slices"
)

// summary is what a number of trials needed, in cells a difference.
type summary struct {
	Trials int     `json:"trials"`
	Mean   float64 `json:"mean"`
	// Half the 95 % interval of the mean, in normal approximation, and the
	// percentiles; 0 if there are too few trials: less than 20, for the 99th
	// percentile less than 100.
	Half float64 `json:"half_interval,omitempty"`
	P95  float64 `json:"p95,omitempty"`
	P99  float64 `json:"p99,omitempty"`
	Max  float64 `json:"max"`
}

// summarize takes the cells that each trial of d differences needed.
func summarize(cells []int, d int) summary {
	n := float64(len(cells))
	sum, squares := 0.0, 0.0
	for _, c := range cells {
		sum += float64(c) / float64(d)
	}
	mean := sum / n
	for _, c := range cells {
		squares += (float64(c)/float64(d) - mean) * (float64(c)/float64(d) - mean)
	}
	cells = slices.Sorted(slices.Values(cells))
	s := summary{Trials: len(cells), Mean: mean, Max: float64(cells[len(cells)-1]) / float64(d)}
	if n >= 20 {
		s.Half = 1.96 * math.Sqrt(squares/(n-1)/n)
		s.P95 = float64(percentile(cells, 95)) / float64(d)
	}
	if n >= 100 {
		s.P99 = float64(percentile(cells, 99)) / float64(d)
	}
	return s
}

// percentile is the least value that percent of all values do not exceed.
func percentile(sorted []int, percent int) int {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// share is how many of a number of trials came out well.
type share struct {
	Law    string `json:"law"`
	Good   int    `json:"good"`
	Trials int    `json:"trials"`
}

// interval is the 95 % interval of the rate behind a share (Wilson 1927),
// which holds near 0 and 1 too.
func (s share) interval() (low, high float64) {
	const z = 1.96
	n, p := float64(s.Trials), float64(s.Good)/float64(s.Trials)
	middle, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return (middle - half) / (1 + z*z/n), (middle + half) / (1 + z*z/n)
}
