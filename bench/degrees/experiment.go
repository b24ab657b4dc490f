package main

import (
	"fmt"
	"hash/fnv"
	"io"

	"github.com/syncd-io/syncd/internal/trials"
)

// sizes are the numbers of differences that are measured.
var sizes = []int{1, 2, 3, 5, 10, 20, 40, 64, 100, 256, 1000, 3000, 10_000, 100_000}

// row is one measured point: a law, the make-up of the differences, and their
// number.
type row struct {
	Law         string  `json:"law"`
	Records     records `json:"records,omitempty"` // empty in a simulation, which does not see them
	Differences int     `json:"differences"`
	summary
}

// The names of the laws in tables and charts.
const (
	lawShipped = "blocks"
	lawJoined  = "joined"
	lawRegular = "regular"
	lawGiven   = "given"
)

// runner runs experiments.
type runner struct {
	seed   uint64
	factor float64   // of the trials
	log    io.Writer // gets a line an experiment
}

// trials is the number of trials of d differences: about as many differences
// in all for each d, but enough for a percentile where that takes minutes only,
// and not more than a percentile needs.
func (r *runner) trials(d int) int {
	n := 2_000_000 / d
	if d <= 100_000 {
		n = max(n, 100)
	}
	return r.times(min(max(n, 20), 20_000))
}

// times applies the factor.
func (r *runner) times(n int) int { return max(2, int(float64(n)*r.factor)) }

// seedFor makes the seed of one trial. All laws get the same ones, which
// narrows the differences between them.
func (r *runner) seedFor(what string, d, number int) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, what)
	return seedOf(r.seed, h.Sum64(), uint64(d), uint64(number))
}

// measure runs the decoder of iblt.
func (r *runner) measure(kind records, d, n int) ([]int, error) {
	fmt.Fprintf(r.log, "decoder, %s, d = %d: %d trials\n", kind, d, n)
	cells := make([]int, n)
	err := trials.Run(n, func() func(int) error {
		return func(number int) (err error) {
			cells[number], err = needed(d, kind, r.seedFor(string(kind), d, number))
			return err
		}
	})
	return cells, err
}

// simulate runs the ideal peel with a law.
func (r *runner) simulate(name string, law law, d, n int) []int {
	fmt.Fprintf(r.log, "simulation, %s, d = %d: %d trials\n", name, d, n)
	cells := make([]int, n)
	_ = trials.Run(n, func() func(int) error { // no trial fails
		s := &simulator{law: law}
		return func(number int) error {
			cells[number] = s.trial(d, r.seedFor("simulation", d, number))
			return nil
		}
	})
	return cells
}

// real measures the shipped decoder with all make-ups of the differences.
func (r *runner) real(ds []int) (rows []row, err error) {
	for _, d := range ds {
		for _, kind := range []records{missing, mismatched, mixed} {
			cells, err := r.measure(kind, d, r.trials(d))
			if err != nil {
				return nil, err
			}
			rows = append(rows, row{lawShipped, kind, d, summarize(cells, d)})
		}
	}
	return rows, nil
}

// named is a law with the name that it has in tables.
type named struct {
	name string
	law  law
}

// laws are compared in simulations.
var laws = []named{{lawShipped, shipped}, {lawJoined, joined}, {lawRegular, regular}}

// simulated are the rows of some laws.
func (r *runner) simulated(laws []named, ds []int) (rows []row) {
	for _, d := range ds {
		for _, l := range laws {
			rows = append(rows, row{l.name, "", d, summarize(r.simulate(l.name, l.law, d, r.trials(d)), d)})
		}
	}
	return rows
}

// A first message carries 128 cells; 40 differences are what it should solve.
const (
	firstCells       = 128
	firstDifferences = 40
	firstTrials      = 100_000
)

func shareOf(law string, cells []int) share {
	s := share{Law: law, Trials: len(cells)}
	for _, n := range cells {
		if n <= firstCells {
			s.Good++
		}
	}
	return s
}

// shares tells how often the first message suffices: with the decoder, unless
// the laws are given, and in simulations.
func (r *runner) shares(laws []named, decoder bool) (out []share, err error) {
	trials := r.times(firstTrials)
	if decoder {
		cells, err := r.measure(mixed, firstDifferences, trials)
		if err != nil {
			return nil, err
		}
		out = append(out, shareOf("the decoder of iblt", cells))
	}
	for _, l := range laws {
		out = append(out, shareOf(l.name+", simulated", r.simulate(l.name, l.law, firstDifferences, trials)))
	}
	return out, nil
}
